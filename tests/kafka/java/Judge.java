package judge;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/**
 * Lets tests ask Apache Kafka. One JSON object a line comes in, {"op": ..., ...}; one a line goes out,
 * {"result": ...} or {"error": {"class": ..., "message": ...}}. Bytes travel as base64. No question ends the process;
 * the end of standard input does.
 *
 * The source is written against the newest Kafka. For older ones tests/kafka/judge.py moves the packages in the
 * imports and adds the Storage class of that release, which holds the only calls that really differ.
 */
public final class Judge {
    /** Answers one kind of question by writing exactly one JSON value. */
    @FunctionalInterface
    interface Operation {
        void answer(JsonNode question, JsonGenerator out) throws Exception;
    }

    static final ObjectMapper JSON = new ObjectMapper(
        JsonFactory.builder()
            .streamReadConstraints(StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build())
            .build());

    private static final Map<String, Operation> OPERATIONS = new TreeMap<>();

    static {
        OPERATIONS.put("version", (question, out) -> out.writeString(AppInfoParser.getVersion()));
        OPERATIONS.put("read", Reading::read);
        OPERATIONS.put("build", Writing::build);
        OPERATIONS.put("control", Writing::control);
        OPERATIONS.put("empty", Writing::empty);
        OPERATIONS.put("compress", Codecs::compress);
        OPERATIONS.put("decompress", Codecs::decompress);
        OPERATIONS.put("utf8", Arithmetic::utf8);
        OPERATIONS.put("murmur2", Arithmetic::murmur2);
        OPERATIONS.put("sequence", Arithmetic::sequence);
        OPERATIONS.put("varint", Arithmetic::varint);
        OPERATIONS.put("validate", Storage::validate);
        OPERATIONS.put("downconvert", Storage::downConvert);
        Storage.register(OPERATIONS);
    }

    private Judge() {
    }

    public static void main(String[] args) throws IOException {
        PrintStream answers = System.out;
        System.setOut(System.err); // whatever a library prints is no answer
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            answers.write(answer(line));
            answers.write('\n');
            answers.flush();
        }
    }

    private static byte[] answer(String line) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(4096);
        try (JsonGenerator out = JSON.createGenerator(bytes)) {
            out.writeStartObject();
            out.writeFieldName("result");
            ask(line, out);
            out.writeEndObject();
        } catch (Throwable failure) { // also what Kafka breaks with: OutOfMemoryError, StackOverflowError, ...
            bytes.reset();
            try (JsonGenerator out = JSON.createGenerator(bytes)) {
                out.writeStartObject();
                error(failure, out);
                out.writeEndObject();
            }
        }
        return bytes.toByteArray();
    }

    private static void ask(String line, JsonGenerator out) throws Exception {
        JsonNode question = JSON.readTree(line);
        Operation operation = OPERATIONS.get(question.path("op").asText());
        if (operation == null) {
            throw new IllegalArgumentException("op is none of " + OPERATIONS.keySet());
        }
        operation.answer(question, out);
    }

    static void error(Throwable failure, JsonGenerator out) throws IOException {
        out.writeObjectFieldStart("error");
        out.writeStringField("class", failure.getClass().getName());
        out.writeStringField("message", String.valueOf(failure.getMessage()));
        out.writeEndObject();
    }
}
