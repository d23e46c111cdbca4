package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.KRaftVersionRecordJsonConverter;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.LeaderChangeMessageJsonConverter;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotFooterRecordJsonConverter;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecordJsonConverter;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.message.VotersRecordJsonConverter;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;

/** What Kafka says is in some bytes, read as a consumer reads them. */
final class Reading {
    private Reading() {
    }

    /** {"buffers": [bytes...], "check": bool}: for each buffer its batches and, where the walk broke off, why. */
    static void read(JsonNode question, JsonGenerator out) throws IOException {
        boolean check = question.path("check").asBoolean(true);
        out.writeStartArray();
        for (JsonNode buffer : question.get("buffers")) {
            walk(MemoryRecords.readableRecords(ByteBuffer.wrap(buffer.binaryValue())), check, out);
        }
        out.writeEndArray();
    }

    private static void walk(MemoryRecords records, boolean check, JsonGenerator out) throws IOException {
        out.writeStartObject();
        out.writeArrayFieldStart("batches");
        Throwable broken = null;
        int size = 0;
        try {
            Iterator<MutableRecordBatch> batches = records.batches().iterator();
            while (broken == null && batches.hasNext()) {
                MutableRecordBatch batch = batches.next();
                broken = batch(batch, check, out);
                size += broken == null ? batch.sizeInBytes() : 0;
            }
        } catch (IOException failure) {
            throw failure; // ours, not Kafka's
        } catch (Throwable failure) {
            broken = failure;
        }
        out.writeEndArray();
        out.writeNumberField("size", size);
        if (broken != null) {
            Judge.error(broken, out);
        }
        out.writeEndObject();
    }

    /** Writes one batch; or nothing, and returns why, where Kafka cannot even tell its header. */
    private static Throwable batch(RecordBatch batch, boolean check, JsonGenerator out) throws IOException {
        Throwable broken = null;
        if (check) {
            try {
                batch.ensureValid();
            } catch (Throwable failure) {
                broken = failure;
            }
        }
        byte[] header;
        try {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream(512);
            try (JsonGenerator fields = Judge.JSON.createGenerator(bytes)) {
                header(batch, fields);
            }
            header = bytes.toByteArray();
        } catch (Throwable failure) {
            return broken != null ? broken : failure;
        }
        out.writeStartObject();
        out.writeFieldName("header");
        out.writeRawValue(new String(header, StandardCharsets.UTF_8));
        out.writeArrayFieldStart("records");
        if (broken == null) {
            broken = records(batch, out);
        }
        out.writeEndArray();
        if (broken != null) {
            Judge.error(broken, out);
        }
        out.writeEndObject();
        return null;
    }

    private static void header(RecordBatch batch, JsonGenerator out) throws IOException {
        out.writeStartObject();
        out.writeNumberField("baseOffset", batch.baseOffset());
        out.writeNumberField("lastOffset", batch.lastOffset());
        out.writeNumberField("nextOffset", batch.nextOffset());
        out.writeNumberField("magic", batch.magic());
        out.writeNumberField("checksum", batch.checksum());
        out.writeBooleanField("isValid", batch.isValid());
        out.writeNumberField("sizeInBytes", batch.sizeInBytes());
        if (batch.countOrNull() != null) {
            out.writeNumberField("count", batch.countOrNull());
        }
        out.writeStringField("compression", batch.compressionType().name);
        out.writeStringField("timestampType", batch.timestampType().name);
        if (batch instanceof DefaultRecordBatch) {
            out.writeNumberField("baseTimestamp", ((DefaultRecordBatch) batch).baseTimestamp());
        }
        out.writeNumberField("maxTimestamp", batch.maxTimestamp());
        out.writeNumberField("producerId", batch.producerId());
        out.writeNumberField("producerEpoch", batch.producerEpoch());
        out.writeNumberField("baseSequence", batch.baseSequence());
        out.writeNumberField("lastSequence", batch.lastSequence());
        out.writeBooleanField("isTransactional", batch.isTransactional());
        out.writeBooleanField("isControl", batch.isControlBatch());
        out.writeNumberField("leaderEpoch", batch.partitionLeaderEpoch());
        if (batch.deleteHorizonMs().isPresent()) {
            out.writeNumberField("deleteHorizon", batch.deleteHorizonMs().getAsLong());
        }
        out.writeEndObject();
    }

    /** Writes the records up to the end, or up to the first that Kafka refuses, and then returns why. */
    private static Throwable records(RecordBatch batch, JsonGenerator out) throws IOException {
        try (CloseableIterator<Record> records = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
            while (records.hasNext()) {
                Record record = records.next();
                ControlRecordType type = batch.isControlBatch() ? ControlRecordType.parse(record.key()) : null;
                JsonNode control = type == null ? null : control(type, record);
                record(record, batch, type, control, out);
            }
            return null;
        } catch (IOException failure) {
            throw failure;
        } catch (Throwable failure) {
            return failure;
        }
    }

    private static void record(
        Record record, RecordBatch batch, ControlRecordType type, JsonNode control, JsonGenerator out
    ) throws IOException {
        out.writeStartObject();
        out.writeNumberField("offset", record.offset());
        out.writeNumberField("timestamp", record.timestamp());
        out.writeStringField("timestampType", timestampType(record, batch).name);
        out.writeNumberField("sequence", record.sequence());
        out.writeNumberField("sizeInBytes", record.sizeInBytes());
        bytes("key", record.key(), out);
        bytes("value", record.value(), out);
        out.writeArrayFieldStart("headers");
        for (Header header : record.headers()) {
            out.writeStartArray();
            out.writeString(header.key());
            if (header.value() == null) {
                out.writeNull();
            } else {
                out.writeBinary(header.value());
            }
            out.writeEndArray();
        }
        out.writeEndArray();
        if (type != null) {
            out.writeStringField("controlType", type.name());
            out.writeFieldName("control");
            Judge.JSON.writeTree(out, control);
        }
        out.writeEndObject();
    }

    /** Records of magic 2 leave the question to their batch. */
    private static TimestampType timestampType(Record record, RecordBatch batch) {
        for (TimestampType type : TimestampType.values()) {
            if (record.hasTimestampType(type)) {
                return type;
            }
        }
        return batch.timestampType();
    }

    private static void bytes(String name, ByteBuffer buffer, JsonGenerator out) throws IOException {
        if (buffer != null) {
            out.writeBinaryField(name, Utils.toArray(buffer));
        }
    }

    /** Kafka 4.4 reads each with the layout of its current version, whatever the version field in the value says. */
    private static JsonNode control(ControlRecordType type, Record record) {
        switch (type) {
            case ABORT:
            case COMMIT:
                int epoch = EndTransactionMarker.deserialize(record).coordinatorEpoch();
                return Judge.JSON.createObjectNode().put("coordinatorEpoch", epoch);
            case LEADER_CHANGE:
                LeaderChangeMessage change = ControlRecordUtils.deserializeLeaderChangeMessage(record);
                return LeaderChangeMessageJsonConverter.write(change, ControlRecordUtils.LEADER_CHANGE_CURRENT_VERSION);
            case SNAPSHOT_HEADER:
                SnapshotHeaderRecord header = ControlRecordUtils.deserializeSnapshotHeaderRecord(record);
                return SnapshotHeaderRecordJsonConverter.write(header, ControlRecordUtils.SNAPSHOT_HEADER_CURRENT_VERSION);
            case SNAPSHOT_FOOTER:
                SnapshotFooterRecord footer = ControlRecordUtils.deserializeSnapshotFooterRecord(record);
                return SnapshotFooterRecordJsonConverter.write(footer, ControlRecordUtils.SNAPSHOT_FOOTER_CURRENT_VERSION);
            case KRAFT_VERSION:
                KRaftVersionRecord version = ControlRecordUtils.deserializeKRaftVersionRecord(record);
                return KRaftVersionRecordJsonConverter.write(version, ControlRecordUtils.KRAFT_VERSION_CURRENT_VERSION);
            case KRAFT_VOTERS:
                VotersRecord voters = ControlRecordUtils.deserializeVotersRecord(record);
                return VotersRecordJsonConverter.write(voters, ControlRecordUtils.KRAFT_VOTERS_CURRENT_VERSION);
            default:
                return Judge.JSON.nullNode();
        }
    }
}
