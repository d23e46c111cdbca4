package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.DumpLogSegments;

/** Runs kafka-dump-log with given arguments, as often as it is asked, and tells what it prints and how it ends. */
final class Dumping {
    private Dumping() {
    }

    /** Ends a run of the tool in place of the process. */
    private static final class Ended extends Error {
        private final int code;

        Ended(int code) {
            super(null, null, false, false);
            this.code = code;
        }
    }

    static void register(Map<String, Judge.Operation> operations) {
        operations.put("dump", Dumping::dump);
    }

    private static void dump(JsonNode question, JsonGenerator out) throws IOException {
        out.writeStartArray();
        for (JsonNode run : question.get("runs")) {
            List<String> arguments = new ArrayList<>();
            run.forEach(argument -> arguments.add(argument.asText()));
            run(arguments.toArray(new String[0]), out);
        }
        out.writeEndArray();
    }

    private static void run(String[] arguments, JsonGenerator out) throws IOException {
        PrintStream usualOut = System.out;
        PrintStream usualErr = System.err;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        Exit.setExitProcedure((code, message) -> {
            throw new Ended(code);
        });
        int exit = 0;
        System.setOut(new PrintStream(printed, false, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(errors, false, StandardCharsets.UTF_8));
        try {
            DumpLogSegments.main(arguments);
        } catch (Ended ended) {
            exit = ended.code;
        } catch (Throwable uncaught) { // ends a process like this
            System.err.print("Exception in thread \"main\" ");
            uncaught.printStackTrace();
            exit = 1;
        } finally {
            System.out.flush();
            System.err.flush();
            System.setOut(usualOut);
            System.setErr(usualErr);
            Exit.resetExitProcedure();
        }
        out.writeStartObject();
        out.writeNumberField("exit", exit);
        out.writeBinaryField("out", printed.toByteArray());
        out.writeBinaryField("err", errors.toByteArray());
        out.writeEndObject();
    }
}
