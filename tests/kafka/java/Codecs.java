package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;

/** Kafka's compression streams alone. */
final class Codecs {
    private Codecs() {
    }

    /** The codec that a question names, at its level if it has one. */
    static Compression codec(JsonNode question) {
        CompressionType type = CompressionType.forName(question.get("codec").asText());
        if (!question.hasNonNull("level")) {
            return Compression.of(type).build();
        }
        int level = question.get("level").asInt();
        switch (type) {
            case GZIP:
                return Compression.gzip().level(level).build();
            case LZ4:
                return Compression.lz4().level(level).build();
            case ZSTD:
                return Compression.zstd().level(level).build();
            default:
                throw new IllegalArgumentException(type + " has no levels");
        }
    }

    /** {"codec", "level", "magic", "buffers"}: each buffer as one compressed stream. */
    static void compress(JsonNode question, JsonGenerator out) throws IOException {
        Compression codec = codec(question);
        byte magic = (byte) question.get("magic").asInt();
        out.writeStartArray();
        for (JsonNode buffer : question.get("buffers")) {
            ByteBufferOutputStream target = new ByteBufferOutputStream(1024);
            try (OutputStream stream = codec.wrapForOutput(target, magic)) {
                stream.write(buffer.binaryValue());
            }
            ByteBuffer bytes = target.buffer();
            bytes.flip();
            out.writeBinary(Utils.toArray(bytes));
        }
        out.writeEndArray();
    }

    /** {"codec", "magic", "buffers"}: what each stream holds, or the error that it ends in. */
    static void decompress(JsonNode question, JsonGenerator out) throws IOException {
        Compression codec = codec(question);
        byte magic = (byte) question.get("magic").asInt();
        out.writeStartArray();
        for (JsonNode buffer : question.get("buffers")) {
            ByteBuffer bytes = ByteBuffer.wrap(buffer.binaryValue());
            out.writeStartObject();
            try (InputStream stream = codec.wrapForInput(bytes, magic, BufferSupplier.NO_CACHING)) {
                out.writeBinaryField("bytes", stream.readAllBytes());
            } catch (Throwable failure) {
                Judge.error(failure, out);
            }
            out.writeEndObject();
        }
        out.writeEndArray();
    }
}
