package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.ByteUtils;

/** The small functions that everything else leans on. */
final class Arithmetic {
    private Arithmetic() {
    }

    /** {"buffers"}: each as the String that Java makes of it. */
    static void utf8(JsonNode question, JsonGenerator out) throws IOException {
        out.writeStartArray();
        for (JsonNode buffer : question.get("buffers")) {
            out.writeString(new String(buffer.binaryValue(), StandardCharsets.UTF_8));
        }
        out.writeEndArray();
    }

    /** {"buffers", "partitions"}: hash and partition of each key. */
    static void murmur2(JsonNode question, JsonGenerator out) throws IOException {
        int partitions = question.get("partitions").asInt();
        out.writeStartArray();
        for (JsonNode buffer : question.get("buffers")) {
            int hash = Utils.murmur2(buffer.binaryValue());
            out.writeArray(new int[] {hash, Utils.toPositive(hash) % partitions}, 0, 2);
        }
        out.writeEndArray();
    }

    /** {"pairs": [[sequence, step]...]}: each incremented and decremented. */
    static void sequence(JsonNode question, JsonGenerator out) throws IOException {
        out.writeStartArray();
        for (JsonNode pair : question.get("pairs")) {
            int sequence = pair.get(0).asInt();
            int step = pair.get(1).asInt();
            int up = DefaultRecordBatch.incrementSequence(sequence, step);
            int down = DefaultRecordBatch.decrementSequence(sequence, step);
            out.writeArray(new int[] {up, down}, 0, 2);
        }
        out.writeEndArray();
    }

    /** {"long": bool, "stream": bool} with "write": numbers to bytes, or "read": bytes to number and bytes taken. */
    static void varint(JsonNode question, JsonGenerator out) throws IOException {
        boolean wide = question.get("long").asBoolean();
        boolean stream = question.path("stream").asBoolean();
        out.writeStartArray();
        for (JsonNode value : question.path("write")) {
            ByteBuffer buffer = ByteBuffer.allocate(10);
            if (wide) {
                ByteUtils.writeVarlong(value.asLong(), buffer);
            } else {
                ByteUtils.writeVarint(value.asInt(), buffer);
            }
            buffer.flip();
            out.writeBinary(Utils.toArray(buffer));
        }
        for (JsonNode value : question.path("read")) {
            out.writeStartObject();
            try {
                long[] answer = read(value.binaryValue(), wide, stream);
                out.writeNumberField("value", answer[0]);
                out.writeNumberField("size", answer[1]);
            } catch (RuntimeException | IOException failure) {
                Judge.error(failure, out);
            }
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    /** Kafka has two readers: one for buffers, one for the streams of compressed batches. */
    private static long[] read(byte[] bytes, boolean wide, boolean stream) throws IOException {
        if (stream) {
            ByteArrayInputStream input = new ByteArrayInputStream(bytes);
            long value = wide ? ByteUtils.readVarlong(input) : ByteUtils.readVarint(input);
            return new long[] {value, bytes.length - input.available()};
        }
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        long value = wide ? ByteUtils.readVarlong(buffer) : ByteUtils.readVarint(buffer);
        return new long[] {value, buffer.position()};
    }
}
