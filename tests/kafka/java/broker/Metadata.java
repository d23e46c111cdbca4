package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Records of `__cluster_metadata`: what Kafka reads in them, and how it would write the same. */
final class Metadata {
    private Metadata() {
    }

    static void register(Map<String, Judge.Operation> operations) {
        operations.put("metadata", Metadata::read);
    }

    private static void read(JsonNode question, JsonGenerator out) throws IOException {
        out.writeStartArray();
        for (JsonNode buffer : question.get("buffers")) {
            out.writeStartObject();
            try {
                byte[] bytes = buffer.binaryValue();
                record(bytes, out);
            } catch (Exception | StackOverflowError failure) {
                Judge.error(failure, out);
            }
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    private static void record(byte[] bytes, JsonGenerator out) throws IOException {
        ByteBufferAccessor source = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
        ApiMessageAndVersion record = MetadataRecordSerde.INSTANCE.read(source, bytes.length);
        JsonNode data = MetadataJsonConverters.writeJson(record.message(), record.version());
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer target = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
        MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(target));
        out.writeNumberField("type", record.message().apiKey());
        out.writeNumberField("version", record.version());
        out.writeObjectField("data", data);
        out.writeBinaryField("bytes", target.array());
    }
}
