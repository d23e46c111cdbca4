package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TransactionVersion;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Kafka's own log of a partition, each under a clock of its own. A question names its log by the number that "log.open"
 * gave it. Where Kafka refuses, the answer is {"refused": {"code", "class", "message", "records"}} with the code that a
 * client would be told.
 */
final class Logs {
    /** What is asked of a log that is open. */
    @FunctionalInterface
    interface Question {
        void answer(Logs log, JsonNode question, JsonGenerator out) throws Exception;
    }

    private static final int DAY_MS = 86_400_000;
    private static final Map<Integer, Logs> OPEN = new HashMap<>();
    private static final BrokerTopicStats STATS = new BrokerTopicStats();
    private static int opened;

    final UnifiedLog log;
    final Clock clock;
    private final boolean follows; // the high watermark goes with the end, as where there is but one replica

    private Logs(UnifiedLog log, Clock clock, boolean follows) {
        this.log = log;
        this.clock = clock;
        this.follows = follows;
    }

    static void register(Map<String, Judge.Operation> operations) {
        operations.put("log.open", (question, out) -> guarded(out, () -> open(question, out)));
        put(operations, "close", Logs::close);
        put(operations, "state", Logs::state);
        put(operations, "append", Logs::append);
        put(operations, "follow", Logs::follow);
        put(operations, "reads", Logs::reads);
        put(operations, "times", Logs::times);
        put(operations, "epochEnds", Logs::epochEnds);
        put(operations, "assignEpoch", (log, question, out) -> log.assignEpoch(question));
        put(operations, "watermark", (log, question, out) -> log.log.updateHighWatermark(question.get("offset").asLong()));
        put(operations, "roll", (log, question, out) -> log.log.roll());
        put(operations, "flush", (log, question, out) -> log.log.flush(false));
        put(operations, "truncate", (log, question, out) -> Cleaning.truncate(log.log, question.get("offset").asLong()));
        put(operations, "deleteRecords", (log, question, out) -> log.deleteRecords(question.get("offset").asLong()));
        put(operations, "retain", (log, question, out) -> log.log.deleteOldSegments());
        put(operations, "configure", (log, question, out) -> log.log.updateConfig(config(question)));
    }

    /** {"log", "now"} and what the question needs: the clock is set, then the question answered. */
    static void put(Map<String, Judge.Operation> operations, String name, Question asked) {
        operations.put("log." + name, (question, out) -> guarded(out, () -> {
            Logs log = OPEN.get(question.get("log").asInt());
            if (log == null) {
                throw new IllegalStateException("that log is not open");
            }
            if (question.hasNonNull("now")) {
                log.clock.set(question.get("now").asLong());
            }
            asked.answer(log, question, out);
        }));
    }

    /** Does it, and writes an empty answer where it has written none. */
    static void guarded(JsonGenerator out, ThrowingRunnable work) throws IOException {
        out.writeStartObject();
        try {
            work.run();
        } catch (Throwable failure) { // also errors, as the snappy library throws them
            refused(failure, out);
        }
        out.writeEndObject();
    }

    @FunctionalInterface
    interface ThrowingRunnable {
        void run() throws Exception;
    }

    private static void refused(Throwable failure, JsonGenerator out) throws IOException {
        Throwable reason = failure;
        List<ProduceResponse.RecordError> records = List.of();
        if (failure instanceof RecordValidationException) {
            reason = ((RecordValidationException) failure).invalidException();
            records = ((RecordValidationException) failure).recordErrors();
        }
        out.writeObjectFieldStart("refused");
        out.writeNumberField("code", Errors.forException(reason).code());
        out.writeStringField("class", reason.getClass().getName());
        out.writeStringField("message", String.valueOf(reason.getMessage()));
        out.writeArrayFieldStart("records");
        for (ProduceResponse.RecordError record : records) {
            out.writeStartArray();
            out.writeNumber(record.batchIndex);
            out.writeString(record.message);
            out.writeEndArray();
        }
        out.writeEndArray();
        out.writeEndObject();
    }

    // Opening and closing

    static LogConfig config(JsonNode question) {
        Properties properties = new Properties();
        question.get("config").fields().forEachRemaining(entry -> properties.put(entry.getKey(), entry.getValue().asText()));
        return new LogConfig(properties);
    }

    /** {"folder", "config", "clean", "recoveryPoint", "startOffset", "now", "follows"}: as LogManager loads a partition. */
    private static void open(JsonNode question, JsonGenerator out) throws IOException {
        Clock clock = new Clock(question.get("now").asLong());
        Logs opening = new Logs(create(question, clock, clock), clock, question.get("follows").asBoolean());
        opening.followEnd();
        OPEN.put(++opened, opening);
        out.writeNumberField("log", opened);
    }

    /** Nobody verifies transactions: whoever says that one is open is believed. */
    static UnifiedLog create(JsonNode question, Scheduler scheduler, Time time) throws IOException {
        int expirationMs = question.path("producerExpiration").asInt(DAY_MS);
        return UnifiedLog.create(
            new File(question.get("folder").asText()),
            config(question),
            question.path("startOffset").asLong(0),
            question.path("recoveryPoint").asLong(0),
            scheduler,
            STATS,
            time,
            DAY_MS,
            new ProducerStateManagerConfig(expirationMs, false),
            DAY_MS,
            new LogDirFailureChannel(10),
            question.get("clean").asBoolean(),
            Optional.empty());
    }

    /** {"flush": bool}: as at a shutdown, or with "flush" false only so that the process lets go of the files. */
    private void close(JsonNode question, JsonGenerator out) throws IOException {
        OPEN.remove(question.get("log").asInt());
        if (question.get("flush").asBoolean()) {
            log.flush(true);
            log.close();
            state(question, out);
        } else {
            log.closeHandlers();
        }
    }

    private void state(JsonNode question, JsonGenerator out) throws IOException {
        out.writeNumberField("startOffset", log.logStartOffset());
        out.writeNumberField("endOffset", log.logEndOffset());
        out.writeNumberField("highWatermark", log.highWatermark());
        out.writeNumberField("recoveryPoint", log.recoveryPoint());
        out.writeArrayFieldStart("segments");
        for (LogSegment segment : log.logSegments()) {
            out.writeArray(new long[] {segment.baseOffset(), segment.size()}, 0, 2);
        }
        out.writeEndArray();
        out.writeArrayFieldStart("epochs");
        for (EpochEntry entry : log.leaderEpochCache().epochEntries()) {
            out.writeArray(new long[] {entry.epoch(), entry.startOffset()}, 0, 2);
        }
        out.writeEndArray();
    }

    private void followEnd() throws IOException {
        if (follows) {
            log.updateHighWatermark(log.logEndOffset());
        }
    }

    // Appending

    /** {"records", "epoch", "origin", "transactions"}: as the leader; the last is the version of transactions. */
    private void append(JsonNode question, JsonGenerator out) throws IOException {
        AppendOrigin origin = AppendOrigin.valueOf(question.get("origin").asText());
        LogAppendInfo info = log.appendAsLeader(
            records(question),
            question.get("epoch").asInt(),
            origin,
            RequestLocal.noCaching(),
            VerificationGuard.SENTINEL,
            (short) question.path("transactions").asInt(TransactionVersion.TV_0.featureLevel()));
        appended(info, out);
    }

    /** {"records", "epoch"}: as a follower. */
    private void follow(JsonNode question, JsonGenerator out) throws IOException {
        appended(log.appendAsFollower(records(question), question.get("epoch").asInt()), out);
    }

    private static MemoryRecords records(JsonNode question) throws IOException {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(question.get("records").binaryValue()));
    }

    private void appended(LogAppendInfo info, JsonGenerator out) throws IOException {
        followEnd();
        out.writeNumberField("firstOffset", info.firstOffset());
        out.writeNumberField("lastOffset", info.lastOffset());
        out.writeNumberField("appendTime", info.logAppendTime());
        out.writeNumberField("startOffset", info.logStartOffset());
    }

    private void assignEpoch(JsonNode question) {
        log.assignEpochStartOffset(question.get("epoch").asInt(), log.logEndOffset());
    }

    /** As Partition does it for a client's request. */
    private void deleteRecords(long offset) {
        if (!log.config().delete) {
            throw new PolicyViolationException("the topic's cleanup policy is not delete");
        }
        long before = offset == -1 ? log.highWatermark() : offset;
        if (before < 0) {
            throw new OffsetOutOfRangeException("a negative offset");
        }
        log.maybeIncrementLogStartOffset(before, LogStartOffsetIncrementReason.ClientRecordDeletion);
    }

    // Reading

    /** {"reads": [[offset, maximum, isolation, at least one]...]}: bytes, or why not, of each. */
    private void reads(JsonNode question, JsonGenerator out) throws IOException {
        out.writeArrayFieldStart("reads");
        for (JsonNode asked : question.get("reads")) {
            guarded(out, () -> {
                FetchIsolation isolation = FetchIsolation.valueOf(asked.get(2).asText());
                FetchDataInfo info = log.read(asked.get(0).asLong(), asked.get(1).asInt(), isolation, asked.get(3).asBoolean());
                out.writeBinaryField("records", bytes(info.records));
                Producers.aborted(info, out);
            });
        }
        out.writeEndArray();
    }

    private static byte[] bytes(Records records) throws IOException {
        if (records instanceof MemoryRecords) {
            return Utils.toArray(((MemoryRecords) records).buffer());
        }
        ByteBuffer buffer = ByteBuffer.allocate(records.sizeInBytes());
        ((FileRecords) records).readInto(buffer, 0);
        return Utils.toArray(buffer);
    }

    /** {"times": [...]}: for each the offset, timestamp and leader epoch found; -3 asks for the latest of all timestamps. */
    private void times(JsonNode question, JsonGenerator out) throws IOException {
        out.writeArrayFieldStart("times");
        for (JsonNode asked : question.get("times")) {
            guarded(out, () -> {
                Optional<FileRecords.TimestampAndOffset> found =
                    log.fetchOffsetByTimestamp(asked.asLong(), Optional.empty()).timestampAndOffsetOpt();
                if (found.isPresent()) {
                    out.writeNumberField("offset", found.get().offset);
                    out.writeNumberField("timestamp", found.get().timestamp);
                    out.writeNumberField("epoch", found.get().leaderEpoch.orElse(-1));
                }
            });
        }
        out.writeEndArray();
    }

    /** {"epochs": [...]}: epoch and end offset for each, null where Kafka knows none. */
    private void epochEnds(JsonNode question, JsonGenerator out) throws IOException {
        out.writeArrayFieldStart("ends");
        for (JsonNode epoch : question.get("epochs")) {
            Optional<OffsetAndEpoch> end = log.endOffsetForEpoch(epoch.asInt());
            if (end.isPresent()) {
                out.writeArray(new long[] {end.get().epoch(), end.get().offset()}, 0, 2);
            } else {
                out.writeNull();
            }
        }
        out.writeEndArray();
    }
}
