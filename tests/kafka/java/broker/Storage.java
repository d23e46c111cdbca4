package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.PrimitiveRef;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.LogValidator.ValidationResult;

/** Kafka 4: validates, and converts up; down it no longer converts. */
final class Storage {
    private Storage() {
    }

    /** What else can be asked of this release. */
    static void register(Map<String, Judge.Operation> operations) {
        LogFiles.register(operations);
        Logs.register(operations);
        Producers.register(operations);
        Cleaning.register(operations);
        Metadata.register(operations);
        InternalRecords.register(operations);
        Clients.register(operations);
        Members.register(operations);
        Administration.register(operations);
        Tools.register(operations);
    }

    /** What the leader makes of a client's records before it appends them. */
    static void validate(JsonNode question, JsonGenerator out) throws IOException {
        MemoryRecords records = Broker.records(question);
        Compression target = Codecs.codec(question);
        LogValidator validator = new LogValidator(
            records,
            new TopicPartition("judge", 0),
            Broker.clock(question.get("now").asLong()),
            records.batches().iterator().next().compressionType(),
            target,
            question.get("compacted").asBoolean(),
            (byte) question.get("magic").asInt(),
            TimestampType.forName(question.get("timestampType").asText()),
            Long.MAX_VALUE,
            Long.MAX_VALUE,
            question.get("leaderEpoch").asInt(),
            AppendOrigin.valueOf(question.get("origin").asText()));
        ValidationResult result = validator.validateMessagesAndAssignOffsets(
            PrimitiveRef.ofLong(question.get("firstOffset").asLong()), Broker.NO_METRICS, BufferSupplier.NO_CACHING);
        Broker.validated(result.validatedRecords(), result.maxTimestampMs(), result.messageSizeMaybeChanged(), out);
    }

    static void downConvert(JsonNode question, JsonGenerator out) {
        throw new UnsupportedOperationException("Kafka 4 converts no records down: ask the legacy release");
    }
}
