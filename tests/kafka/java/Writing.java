package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecordJsonConverter;
import org.apache.kafka.common.message.LeaderChangeMessageJsonConverter;
import org.apache.kafka.common.message.SnapshotFooterRecordJsonConverter;
import org.apache.kafka.common.message.SnapshotHeaderRecordJsonConverter;
import org.apache.kafka.common.message.VotersRecordJsonConverter;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;

/** Batches as Kafka's own builder makes them. */
final class Writing {
    private Writing() {
    }

    /** {"batches": [...]}: the bytes of each. One that Kafka refuses fails the question. */
    static void build(JsonNode question, JsonGenerator out) throws IOException {
        out.writeStartArray();
        for (JsonNode batch : question.get("batches")) {
            out.writeBinary(Utils.toArray(build(batch).buffer()));
        }
        out.writeEndArray();
    }

    private static MemoryRecords build(JsonNode batch) throws IOException {
        boolean control = batch.get("control").asBoolean();
        long offset = batch.get("baseOffset").asLong();
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            new ByteBufferOutputStream(1024),
            (byte) batch.get("magic").asInt(),
            Codecs.codec(batch),
            TimestampType.forName(batch.get("timestampType").asText()),
            offset,
            batch.get("logAppendTime").asLong(),
            batch.get("producerId").asLong(),
            (short) batch.get("producerEpoch").asInt(),
            batch.get("baseSequence").asInt(),
            batch.get("transactional").asBoolean(),
            control,
            batch.get("leaderEpoch").asInt(),
            Integer.MAX_VALUE,
            batch.get("deleteHorizon").asLong());
        for (JsonNode node : batch.get("records")) {
            offset = node.hasNonNull("offset") ? node.get("offset").asLong() : offset;
            SimpleRecord record = record(node);
            if (control) {
                builder.appendControlRecordWithOffset(offset, record);
            } else {
                builder.appendWithOffset(offset, record);
            }
            offset++;
        }
        if (batch.hasNonNull("lastOffset")) {
            builder.overrideLastOffset(batch.get("lastOffset").asLong());
        }
        return builder.build();
    }

    private static SimpleRecord record(JsonNode node) throws IOException {
        JsonNode given = node.get("headers");
        Header[] headers = new Header[given.size()];
        for (int i = 0; i < headers.length; i++) {
            JsonNode header = given.get(i);
            headers[i] = new RecordHeader(header.get(0).asText(), header.get(1).binaryValue());
        }
        return new SimpleRecord(
            node.get("timestamp").asLong(), node.get("key").binaryValue(), node.get("value").binaryValue(), headers);
    }

    /** {"type": name of a ControlRecordType, ..., "value": what a KRaft record holds, as in Kafka's own JSON}. */
    static void control(JsonNode question, JsonGenerator out) throws IOException {
        ControlRecordType type = ControlRecordType.valueOf(question.get("type").asText());
        long offset = question.get("offset").asLong();
        long timestamp = question.get("timestamp").asLong();
        int epoch = question.get("leaderEpoch").asInt();
        JsonNode value = question.path("value");
        ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
        MemoryRecords records;
        switch (type) {
            case ABORT:
            case COMMIT:
                records = MemoryRecords.withEndTransactionMarker(
                    offset, timestamp, epoch, question.get("producerId").asLong(),
                    (short) question.get("producerEpoch").asInt(),
                    new EndTransactionMarker(type, question.get("coordinatorEpoch").asInt()));
                break;
            case LEADER_CHANGE:
                records = MemoryRecords.withLeaderChangeMessage(
                    offset, timestamp, epoch, buffer,
                    LeaderChangeMessageJsonConverter.read(value, ControlRecordUtils.LEADER_CHANGE_CURRENT_VERSION));
                break;
            case SNAPSHOT_HEADER:
                records = MemoryRecords.withSnapshotHeaderRecord(
                    offset, timestamp, epoch, buffer,
                    SnapshotHeaderRecordJsonConverter.read(value, ControlRecordUtils.SNAPSHOT_HEADER_CURRENT_VERSION));
                break;
            case SNAPSHOT_FOOTER:
                records = MemoryRecords.withSnapshotFooterRecord(
                    offset, timestamp, epoch, buffer,
                    SnapshotFooterRecordJsonConverter.read(value, ControlRecordUtils.SNAPSHOT_FOOTER_CURRENT_VERSION));
                break;
            case KRAFT_VERSION:
                records = MemoryRecords.withKRaftVersionRecord(
                    offset, timestamp, epoch, buffer,
                    KRaftVersionRecordJsonConverter.read(value, ControlRecordUtils.KRAFT_VERSION_CURRENT_VERSION));
                break;
            case KRAFT_VOTERS:
                records = MemoryRecords.withVotersRecord(
                    offset, timestamp, epoch, buffer,
                    VotersRecordJsonConverter.read(value, ControlRecordUtils.KRAFT_VOTERS_CURRENT_VERSION));
                break;
            default:
                throw new IllegalArgumentException("Kafka writes no control record of type " + type);
        }
        out.writeBinary(Utils.toArray(records.buffer()));
    }

    /** The header without records that compaction leaves behind. */
    static void empty(JsonNode question, JsonGenerator out) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(
            buffer,
            (byte) question.get("magic").asInt(),
            question.get("producerId").asLong(),
            (short) question.get("producerEpoch").asInt(),
            question.get("baseSequence").asInt(),
            question.get("baseOffset").asLong(),
            question.get("lastOffset").asLong(),
            question.get("leaderEpoch").asInt(),
            TimestampType.forName(question.get("timestampType").asText()),
            question.get("timestamp").asLong(),
            question.get("transactional").asBoolean(),
            question.get("control").asBoolean());
        buffer.flip();
        out.writeBinary(Utils.toArray(buffer));
    }
}
