package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigDef.ConfigKey;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.PropertiesUtils;
import org.apache.kafka.server.util.FileLock;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/** The small files of a data directory, its lock, the names in it, and the configuration of a topic, as Kafka has them. */
final class LogFiles {
    /** What is asked of each item of a list: its answer, which may be null, or an exception. */
    @FunctionalInterface
    private interface Question {
        Object answer(JsonNode item) throws Exception;
    }

    private static final LogDirFailureChannel FAILURES = new LogDirFailureChannel(1000);
    private static final Map<String, FileLock> LOCKS = new HashMap<>();

    private LogFiles() {
    }

    static void register(Map<String, Judge.Operation> operations) {
        operations.put("files.config", LogFiles::configs);
        operations.put("files.configNames", (question, out) -> Judge.JSON.writeValue(out, names()));
        operations.put("files.lock", (question, out) -> out.writeBoolean(lock(question)));
        operations.put("files.pid", (question, out) -> out.writeNumber(ProcessHandle.current().pid()));
        operations.put("files.properties", each(item -> load(item.binaryValue())));
        operations.put("files.store", each(LogFiles::store));
        operations.put("files.uuid", each(item -> Uuid.fromString(item.asText()).toString()));
        operations.put("files.topic", each(LogFiles::topic));
        operations.put("files.folder", each(LogFiles::folder));
        operations.put("files.aside", each(LogFiles::aside));
        operations.put("files.offsets", each(LogFiles::offsets));
        operations.put("files.epochs", each(LogFiles::epochs));
        operations.put("files.metaProperties", each(LogFiles::metaProperties));
        operations.put("files.topicId", each(LogFiles::topicId));
        operations.put("files.brokerEpoch", each(LogFiles::brokerEpoch));
        operations.put("files.epochCache", each(LogFiles::epochCache));
    }

    private static Judge.Operation each(Question question) {
        return (asked, out) -> {
            out.writeStartArray();
            for (JsonNode item : asked.get("items")) {
                out.writeStartObject();
                try {
                    Object answer = question.answer(item);
                    out.writeFieldName("value");
                    Judge.JSON.writeValue(out, answer);
                } catch (Exception failure) {
                    Judge.error(failure, out);
                }
                out.writeEndObject();
            }
            out.writeEndArray();
        };
    }

    // Configuration

    private static void configs(JsonNode question, JsonGenerator out) throws Exception {
        each(LogFiles::config).answer(question, out);
    }

    /** Every value, as text, of the configuration that a broker with tiered storage makes of some properties. */
    private static Map<String, String> config(JsonNode item) {
        Map<String, String> properties = strings(item);
        Map<String, Object> defaults = Map.of("segment.ms", LogConfig.DEFAULT_SEGMENT_MS); // one is enough to check it all
        LogConfig.validate(Map.of(), properties, defaults, true);
        LogConfig config = new LogConfig(properties);
        Map<String, String> values = new TreeMap<>();
        config.values().forEach((name, value) -> values.put(name, text(value)));
        values.put("segment.bytes", text(config.segmentSize()));
        values.remove(LogConfig.INTERNAL_SEGMENT_BYTES_CONFIG);
        values.put("max.segment.ms", text(config.maxSegmentMs()));
        return values;
    }

    private static Map<String, String> names() {
        Map<String, String> defaults = new TreeMap<>();
        for (ConfigKey key : LogConfig.configKeys().values()) {
            defaults.put(key.name, text(key.defaultValue));
        }
        return defaults;
    }

    private static String text(Object value) {
        return value instanceof List<?> list ? String.join(",", list.stream().map(String::valueOf).toList()) : String.valueOf(value);
    }

    // The lock

    private static boolean lock(JsonNode question) throws IOException {
        String path = question.get("path").asText();
        if (question.get("release").asBoolean()) {
            LOCKS.remove(path).unlockAndClose();
            return true;
        }
        FileLock lock = new FileLock(new File(path));
        if (!lock.tryLock()) {
            lock.unlockAndClose();
            return false;
        }
        LOCKS.put(path, lock);
        return true;
    }

    // Names

    private static String topic(JsonNode item) {
        Topic.validate(item.asText());
        return String.valueOf(Topic.isInternal(item.asText()));
    }

    private static List<Object> folder(JsonNode item) throws IOException {
        TopicPartition partition = UnifiedLog.parseTopicPartitionName(new File("/", item.asText()));
        return List.of(partition.topic(), partition.partition());
    }

    private static List<String> aside(JsonNode item) {
        TopicPartition partition = new TopicPartition(item.get(0).asText(), item.get(1).asInt());
        return List.of(
            UnifiedLog.logDirName(partition),
            UnifiedLog.logDeleteDirName(partition),
            UnifiedLog.logStrayDirName(partition),
            UnifiedLog.logFutureDirName(partition));
    }

    // Files: each is written, if there is something to write, and then read

    private static Map<String, String> load(byte[] data) throws IOException {
        Properties properties = new Properties();
        properties.load(new ByteArrayInputStream(data));
        Map<String, String> values = new TreeMap<>();
        properties.stringPropertyNames().forEach(name -> values.put(name, properties.getProperty(name)));
        return values;
    }

    private static byte[] store(JsonNode item) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        properties(item).store(out, null);
        return out.toByteArray();
    }

    private static Map<String, Long> offsets(JsonNode item) throws IOException {
        OffsetCheckpointFile file = new OffsetCheckpointFile(new File(item.get("path").asText()), FAILURES);
        if (item.has("write")) {
            Map<TopicPartition, Long> offsets = new HashMap<>();
            for (JsonNode entry : item.get("write")) {
                offsets.put(new TopicPartition(entry.get(0).asText(), entry.get(1).asInt()), entry.get(2).asLong());
            }
            file.write(offsets);
        }
        Map<String, Long> read = new TreeMap<>();
        file.read().forEach((partition, offset) -> read.put(partition.toString(), offset));
        return read;
    }

    private static List<List<Long>> epochs(JsonNode item) throws IOException {
        LeaderEpochCheckpointFile file = new LeaderEpochCheckpointFile(new File(item.get("path").asText()), FAILURES);
        if (item.has("write")) {
            file.write(entries(item.get("write")));
        }
        return pairs(file.read());
    }

    private static String metaProperties(JsonNode item) throws IOException {
        String path = item.get("path").asText();
        if (item.has("write")) {
            MetaProperties written = new MetaProperties.Builder(properties(item.get("write"))).build();
            PropertiesUtils.writePropertiesFile(written.toProperties(), path, true);
        }
        return new MetaProperties.Builder(PropertiesUtils.readPropertiesFile(path)).build().toString();
    }

    private static String topicId(JsonNode item) {
        PartitionMetadataFile file = new PartitionMetadataFile(new File(item.get("path").asText()), FAILURES);
        if (item.has("write")) {
            file.record(Uuid.fromString(item.get("write").asText()));
            file.maybeFlush();
        }
        return file.read().topicId().toString();
    }

    private static Long brokerEpoch(JsonNode item) throws Exception {
        CleanShutdownFileHandler file = new CleanShutdownFileHandler(item.get("folder").asText());
        if (item.has("write")) {
            file.write(item.get("write").asLong());
        }
        return file.exists() ? file.read().orElse(-2) : null;
    }

    // Leader epochs

    /** After each step of ["name", number, ...]: its answer, and all entries. */
    private static List<List<Object>> epochCache(JsonNode item) throws IOException {
        File path = new File(item.get("path").asText());
        LeaderEpochFileCache cache = new LeaderEpochFileCache(
            new TopicPartition("judge", 0), new LeaderEpochCheckpointFile(path, FAILURES), new Clock(0));
        List<List<Object>> answers = new ArrayList<>();
        for (JsonNode step : item.get("steps")) {
            Object answer = epochStep(cache, step);
            answers.add(List.of(answer, pairs(cache.epochEntries())));
        }
        return answers;
    }

    private static Object epochStep(LeaderEpochFileCache cache, JsonNode step) {
        switch (step.get(0).asText()) {
            case "assign" -> cache.assign(step.get(1).asInt(), step.get(2).asLong());
            case "truncate_from_end" -> cache.truncateFromEndAsyncFlush(step.get(1).asLong());
            case "truncate_from_start" -> cache.truncateFromStartAsyncFlush(step.get(1).asLong());
            case "clear" -> cache.clearAndFlush();
            case "end_offset_for" -> {
                Map.Entry<Integer, Long> end = cache.endOffsetFor(step.get(1).asInt(), step.get(2).asLong());
                return List.of(end.getKey(), end.getValue());
            }
            case "epoch_for_offset" -> {
                OptionalInt epoch = cache.epochForOffset(step.get(1).asLong());
                return epoch.orElse(-1);
            }
            case "latest" -> {
                Optional<EpochEntry> latest = cache.latestEntry();
                return latest.isPresent() ? pairs(List.of(latest.get())) : List.of();
            }
            default -> throw new IllegalArgumentException(step.toString());
        }
        return "";
    }

    private static List<EpochEntry> entries(JsonNode items) {
        List<EpochEntry> entries = new ArrayList<>();
        for (JsonNode item : items) {
            entries.add(new EpochEntry(item.get(0).asInt(), item.get(1).asLong()));
        }
        return entries;
    }

    private static List<List<Long>> pairs(List<EpochEntry> entries) {
        return entries.stream().map(entry -> List.of((long) entry.epoch(), entry.startOffset())).toList();
    }

    private static Map<String, String> strings(JsonNode item) {
        Map<String, String> strings = new HashMap<>();
        item.fields().forEachRemaining(field -> strings.put(field.getKey(), field.getValue().asText()));
        return strings;
    }

    private static Properties properties(JsonNode item) {
        Properties properties = new Properties();
        properties.putAll(strings(item));
        return properties;
    }
}
