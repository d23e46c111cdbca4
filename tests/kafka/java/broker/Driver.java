package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.protocol.Errors;

/**
 * Kafka's Java clients as a program that does what tests/clients/program.py tells it, line by line; there the protocol is
 * described. The argument is bootstrap.servers.
 */
public final class Driver {
    /** Answers one call: writes exactly one JSON value. */
    @FunctionalInterface
    interface Call {
        void answer(JsonNode request, JsonGenerator out) throws Exception;
    }

    /** The client has no way to do what it is asked for. */
    static final class CannotDo extends RuntimeException {
        CannotDo(String message) {
            super(message);
        }
    }

    private static final Map<String, Call> CALLS = new HashMap<>();
    private static final PrintStream ANSWERS = System.out;
    private static String address;

    static {
        DrivenRecords.register(CALLS);
        DrivenAdmin.register(CALLS);
        DrivenGroups.register(CALLS);
        DrivenGroupAdmin.register(CALLS);
        DrivenTransactions.register(CALLS);
    }

    private Driver() {
    }

    public static void main(String[] args) throws IOException {
        address = args[0];
        System.setOut(System.err); // whatever a library prints is no answer
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode request = Judge.JSON.readTree(line);
            try {
                tell("result", out -> CALLS.get(request.get("call").asText()).answer(request, out));
            } catch (CannotDo cannot) {
                tell("cannot", out -> out.writeString(cannot.getMessage()));
            } catch (Exception failure) {
                tellError(failure);
            }
        }
        System.exit(0); // clients have threads of their own
    }

    /** Writes what is left of an answer. */
    @FunctionalInterface
    interface Writing {
        void to(JsonGenerator out) throws Exception;
    }

    /** Writes one line: an object with one field. */
    static void tell(String field, Writing value) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(4096);
        try (JsonGenerator out = Judge.JSON.createGenerator(bytes)) {
            out.writeStartObject();
            out.writeFieldName(field);
            value.to(out);
            out.writeEndObject();
        } catch (IOException | RuntimeException failure) {
            throw failure;
        } catch (Exception failure) {
            throw new CompletionException(failure);
        }
        ANSWERS.write(bytes.toByteArray());
        ANSWERS.write('\n');
        ANSWERS.flush();
    }

    private static void tellError(Throwable failure) throws IOException {
        Throwable cause = failure;
        while ((cause instanceof ExecutionException || cause instanceof CompletionException) && cause.getCause() != null) {
            cause = cause.getCause();
        }
        Errors known = Errors.forException(cause);
        String text = cause.toString();
        tell("error", out -> {
            out.writeStartObject();
            out.writeFieldName("code");
            if (known == Errors.UNKNOWN_SERVER_ERROR) {
                out.writeNull();
            } else {
                out.writeNumber(known.code());
            }
            out.writeStringField("text", text);
            out.writeEndObject();
        });
    }

    /** Settings of all clients: quick to come back when a broker is killed. */
    static Map<String, Object> common() {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", address);
        config.put("reconnect.backoff.max.ms", "500");
        config.put("retry.backoff.ms", "20");
        return config;
    }
}
