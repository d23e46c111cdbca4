package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.utils.Exit;

/** Runs Kafka's command-line tools with given arguments, and tells what each prints and how it ends. */
final class Tools {
    private static final long PATIENCE_MS = TimeUnit.SECONDS.toMillis(60);

    private Tools() {
    }

    /** Ends a run of a tool in place of the process. */
    private static final class Ended extends Error {
        Ended() {
            super(null, null, false, false);
        }
    }

    static void register(Map<String, Judge.Operation> operations) {
        operations.put("tools", Tools::tools);
    }

    /** {"runs": [{"main", "arguments", "input"}, ...]}: the class of the tool, and what it reads from standard input. */
    private static void tools(JsonNode question, JsonGenerator out) throws IOException {
        out.writeStartArray();
        for (JsonNode run : question.get("runs")) {
            List<String> arguments = new ArrayList<>();
            run.get("arguments").forEach(argument -> arguments.add(argument.asText()));
            run(run.get("main").asText(), arguments.toArray(new String[0]), run.path("input").asText(""), out);
        }
        out.writeEndArray();
    }

    private static void run(String main, String[] arguments, String input, JsonGenerator out) throws IOException {
        PrintStream usualOut = System.out;
        PrintStream usualErr = System.err;
        InputStream usualIn = System.in;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        List<Runnable> hooks = new ArrayList<>();
        AtomicInteger exit = new AtomicInteger(-1);
        Exit.setExitProcedure((code, message) -> {
            if (exit.compareAndSet(-1, code)) { // some tools catch everything, and would tell of this as of a failure
                runAll(hooks);
                silence();
            }
            throw new Ended();
        });
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        System.setOut(new PrintStream(printed, false, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(errors, false, StandardCharsets.UTF_8));
        System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
        try {
            patiently(() -> {
                int code = ended(main, arguments);
                if (exit.compareAndSet(-1, code)) {
                    runAll(hooks);
                }
            });
        } finally {
            silence();
            System.setOut(usualOut);
            System.setErr(usualErr);
            System.setIn(usualIn);
            Exit.resetExitProcedure();
            Exit.resetShutdownHookAdder();
        }
        out.writeStartObject();
        out.writeNumberField("exit", exit.get());
        out.writeBinaryField("out", printed.toByteArray());
        out.writeBinaryField("err", errors.toByteArray());
        out.writeEndObject();
    }

    /** In a thread, because a tool that hangs must not stop all that is asked later. */
    private static void patiently(Runnable run) {
        Thread thread = new Thread(run);
        thread.setDaemon(true);
        thread.start();
        try {
            thread.join(PATIENCE_MS);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
        if (thread.isAlive()) {
            System.err.println("The tool did not end within " + PATIENCE_MS + " ms.");
            for (StackTraceElement frame : thread.getStackTrace()) {
                System.err.println("\tat " + frame);
            }
        }
    }

    private static void runAll(List<Runnable> hooks) {
        List<Runnable> due = List.copyOf(hooks);
        hooks.clear();
        due.forEach(Runnable::run);
    }

    private static void silence() {
        System.out.flush();
        System.err.flush();
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        System.setErr(new PrintStream(OutputStream.nullOutputStream()));
    }

    private static int ended(String main, String[] arguments) {
        try {
            Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException thrown) {
            System.err.print("Exception in thread \"main\" "); // what ends a process like this
            thrown.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException unknown) {
            throw new IllegalArgumentException(unknown);
        }
    }
}
