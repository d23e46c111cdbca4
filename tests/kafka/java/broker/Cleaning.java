package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;

/** Kafka's cleaner, which compacts a log: what its thread does, a step for each question. */
final class Cleaning {
    private Cleaning() {
    }

    static void register(Map<String, Judge.Operation> operations) {
        Logs.put(operations, "clean", Cleaning::clean);
        Logs.put(operations, "cleanable", Cleaning::cleanable);
        operations.put("log.timeCleaning", (question, out) -> Logs.guarded(out, () -> timed(question, out)));
    }

    /** {"memory"}: cleans the log if it is due; with the checkpoint read before and written behind. Else nothing is told. */
    private static void clean(Logs log, JsonNode question, JsonGenerator out) throws Exception {
        int memory = question.get("memory").asInt();
        cleaned(log.log, log.clock, new SkimpyOffsetMap(memory, CleanerConfig.HASH_ALGORITHM), out);
    }

    private static boolean cleaned(UnifiedLog log, Time time, SkimpyOffsetMap map, JsonGenerator out) throws Exception {
        LogCleanerManager manager = manager(log);
        try {
            Optional<LogToClean> due = manager.grabFilthiestCompactedLog(time, new PreCleanStats());
            if (due.isEmpty()) {
                return false;
            }
            long end = due.get().firstDirtyOffset();
            try {
                Map.Entry<Long, CleanerStats> done = cleaner(log, time, map).clean(due.get());
                end = done.getKey();
                stats(done.getValue(), out);
            } finally {
                manager.doneCleaning(log.topicPartition(), log.parentDirFile(), end);
            }
            out.writeNumberField("firstDirtyOffset", end);
            return true;
        } finally {
            manager.removeMetrics();
        }
    }

    private static LogCleanerManager manager(UnifiedLog log) {
        ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>(Map.of(log.topicPartition(), log));
        return new LogCleanerManager(List.of(log.parentDirFile()), logs, new LogDirFailureChannel(10));
    }

    /** As LogManager does it: what was clean up to an offset that is gone is so up to the active segment at most. */
    static void truncate(UnifiedLog log, long offset) {
        boolean intoOlder = offset < log.activeSegment().baseOffset();
        log.truncateTo(offset);
        if (intoOlder) {
            LogCleanerManager manager = manager(log);
            manager.maybeTruncateCheckpoint(log.parentDirFile(), log.topicPartition(), log.activeSegment().baseOffset());
            manager.removeMetrics();
        }
    }

    /** Sizes as a broker with one cleaner thread has them; nothing holds it back. */
    private static Cleaner cleaner(UnifiedLog log, Time time, SkimpyOffsetMap map) {
        return new Cleaner(
            0,
            map,
            CleanerConfig.LOG_CLEANER_IO_BUFFER_SIZE / 2,
            log.config().maxMessageSize(),
            CleanerConfig.LOG_CLEANER_DEDUPE_BUFFER_LOAD_FACTOR,
            new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "judge", "bytes", time),
            time,
            partition -> { });
    }

    private static void stats(CleanerStats stats, JsonGenerator out) throws IOException {
        out.writeNumberField("bytesRead", stats.bytesRead());
        out.writeNumberField("bytesWritten", stats.bytesWritten());
        out.writeNumberField("messagesRead", stats.messagesRead());
        out.writeNumberField("messagesWritten", stats.messagesWritten());
        out.writeNumberField("invalidMessagesRead", stats.invalidMessagesRead());
        out.writeNumberField("mapMessagesRead", stats.mapMessagesRead());
        out.writeNumberField("bufferUtilization", stats.bufferUtilization());
    }

    /** {"checkpoint"}: what of the log could be cleaned, where it was cleaned up to an offset, or never if that is null. */
    private static void cleanable(Logs log, JsonNode question, JsonGenerator out) throws Exception {
        long now = log.clock.milliseconds();
        JsonNode checkpoint = question.get("checkpoint");
        Optional<Long> last = checkpoint.isNull() ? Optional.empty() : Optional.of(checkpoint.asLong());
        Object offsets = hidden("cleanableOffsets", UnifiedLog.class, Optional.class, long.class).invoke(null, log.log, last, now);
        long firstDirty = (Long) component(offsets, "firstDirtyOffset");
        long firstUncleanable = (Long) component(offsets, "firstUncleanableDirtyOffset");
        long delay = (Long) hidden("maxCompactionDelay", UnifiedLog.class, long.class, long.class)
            .invoke(null, log.log, firstDirty, now);
        LogToClean candidate = new LogToClean(log.log, firstDirty, firstUncleanable, delay > 0);
        out.writeNumberField("firstDirtyOffset", candidate.firstDirtyOffset());
        out.writeNumberField("firstUncleanableOffset", candidate.firstUncleanableOffset());
        out.writeNumberField("cleanBytes", candidate.cleanBytes());
        out.writeNumberField("cleanableBytes", candidate.cleanableBytes());
        out.writeNumberField("cleanableRatio", candidate.cleanableRatio());
        out.writeNumberField("delay", delay);
        out.writeBooleanField("resets", (Boolean) component(offsets, "forceUpdateCheckpoint"));
    }

    private static Method hidden(String name, Class<?>... parameters) throws NoSuchMethodException {
        Method method = LogCleanerManager.class.getDeclaredMethod(name, parameters);
        method.setAccessible(true);
        return method;
    }

    private static Object component(Object of, String name) throws ReflectiveOperationException {
        Method method = of.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        return method.invoke(of);
    }

    /** {"folder", "config", "memory"}: cleans a log that nobody has open, once, and says how long that took. */
    private static void timed(JsonNode question, JsonGenerator out) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        try (UnifiedLog log = Logs.create(question, scheduler, Time.SYSTEM)) {
            log.updateHighWatermark(log.logEndOffset());
            SkimpyOffsetMap map = new SkimpyOffsetMap(question.get("memory").asInt(), CleanerConfig.HASH_ALGORITHM);
            long start = System.nanoTime();
            boolean cleaned = cleaned(log, Time.SYSTEM, map, out);
            out.writeNumberField("nanoseconds", System.nanoTime() - start);
            out.writeBooleanField("cleaned", cleaned);
        } finally {
            scheduler.shutdown();
        }
    }
}
