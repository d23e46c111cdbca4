package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.transaction.TransactionCoordinatorRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.serialization.BytesApiMessageSerde;
import org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataRecordType;

/** Records of the internal topics: how Kafka's tool prints them, and how Kafka would write the same. */
final class InternalRecords {
    private static final Map<String, CoordinatorRecordSerde> COORDINATORS = Map.of(
        "group", new GroupCoordinatorRecordSerde(),
        "share", new ShareCoordinatorRecordSerde(),
        "transaction", new TransactionCoordinatorRecordSerde());

    private InternalRecords() {
    }

    static void register(Map<String, Judge.Operation> operations) {
        operations.put("printRecords", InternalRecords::print);
        operations.put("rewriteRecords", InternalRecords::rewrite);
    }

    /** What a parser of DumpLogSegments makes of records with keys and values, any of which may be null. */
    private static void print(JsonNode question, JsonGenerator out) throws IOException {
        Object parser;
        Method parse;
        try {
            String outer = "org.apache.kafka.tools.DumpLogSegments$";
            Constructor<?> constructor =
                Class.forName(outer + question.get("parser").asText()).getDeclaredConstructor();
            constructor.setAccessible(true);
            parser = constructor.newInstance();
            parse = Class.forName(outer + "MessageParser").getMethod("parse", Record.class);
            parse.setAccessible(true);
        } catch (ReflectiveOperationException failure) {
            throw new IllegalStateException(failure);
        }
        out.writeStartArray();
        for (JsonNode pair : question.get("records")) {
            out.writeStartObject();
            SimpleRecord simple = new SimpleRecord(0L, bytes(pair.get(0)), bytes(pair.get(1)));
            Record record =
                MemoryRecords.withRecords(question.get("offset").asLong(), Compression.NONE, simple)
                    .records().iterator().next();
            try {
                Object result = parse.invoke(parser, record);
                text(result, "key", "key", out);
                text(result, "value", "payload", out);
            } catch (InvocationTargetException failure) {
                Judge.error(failure.getCause(), out);
            } catch (ReflectiveOperationException failure) {
                throw new IllegalStateException(failure);
            }
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    private static void text(Object result, String component, String field, JsonGenerator out)
            throws IOException, ReflectiveOperationException {
        Method accessor = result.getClass().getDeclaredMethod(component);
        accessor.setAccessible(true);
        Object text = ((Optional<?>) accessor.invoke(result)).orElse(null);
        out.writeStringField(field, text == null ? null : text.toString());
    }

    /** The bytes that Kafka writes for what it has read. */
    private static void rewrite(JsonNode question, JsonGenerator out) throws IOException {
        CoordinatorRecordSerde serde = COORDINATORS.get(question.get("topic").asText());
        out.writeStartArray();
        for (JsonNode pair : question.get("records")) {
            out.writeStartObject();
            try {
                if (serde == null) {
                    out.writeBinaryField("value", remote(bytes(pair.get(1))));
                } else {
                    byte[] value = bytes(pair.get(1));
                    CoordinatorRecord record = serde.deserialize(
                        ByteBuffer.wrap(bytes(pair.get(0))), value == null ? null : ByteBuffer.wrap(value));
                    out.writeBinaryField("key", serde.serializeKey(record));
                    out.writeBinaryField("value", serde.serializeValue(record));
                }
            } catch (RuntimeException failure) {
                Judge.error(failure, out);
            }
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    private static byte[] remote(byte[] bytes) {
        BytesApiMessageSerde serde = new BytesApiMessageSerde() {
            @Override
            public ApiMessage apiMessageFor(short apiKey) {
                return MetadataRecordType.fromId(apiKey).newMetadataRecord();
            }
        };
        ApiMessageAndVersion record = serde.deserialize(bytes);
        return serde.serialize(record);
    }

    private static byte[] bytes(JsonNode node) throws IOException {
        return node.isNull() ? null : node.binaryValue();
    }
}
