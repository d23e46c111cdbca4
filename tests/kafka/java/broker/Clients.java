package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own producers, idempotent and transactional, and its consumers, each told what to do one thing at a time. A
 * question names its producer by the "client" that "producer.open" was asked with. What a client throws is the answer.
 */
final class Clients {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();

    private Clients() {
    }

    static void register(Map<String, Judge.Operation> operations) {
        operations.put("producer.open", (question, out) -> {
            PRODUCERS.put(name(question), new KafkaProducer<>(
                config(question), new ByteArraySerializer(), new ByteArraySerializer()));
            out.writeNull();
        });
        operations.put("producer.send", Clients::send);
        operations.put("producer.init", (question, out) -> told(out, producer(question)::initTransactions));
        operations.put("producer.begin", (question, out) -> told(out, producer(question)::beginTransaction));
        operations.put("producer.commit", (question, out) -> told(out, producer(question)::commitTransaction));
        operations.put("producer.abort", (question, out) -> told(out, producer(question)::abortTransaction));
        operations.put("producer.offsets", (question, out) -> told(out, () -> producer(question).sendOffsetsToTransaction(
            offsets(question), new ConsumerGroupMetadata(question.get("group").asText()))));
        operations.put("producer.close", Clients::close);
        operations.put("consumer.read", Clients::read);
        operations.put("consumer.join", Clients::join);
        operations.put("consumer.share", Clients::share);
    }

    private static String name(JsonNode question) {
        return question.get("client").asText();
    }

    private static KafkaProducer<byte[], byte[]> producer(JsonNode question) {
        return producer(name(question));
    }

    static KafkaProducer<byte[], byte[]> producer(String name) {
        return PRODUCERS.get(name);
    }

    static Map<String, Object> config(JsonNode question) {
        Map<String, Object> config = new HashMap<>();
        question.get("config").properties().forEach(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        return config;
    }

    static TopicPartition partition(JsonNode question) {
        return new TopicPartition(question.get("topic").asText(), question.get("partition").asInt());
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode question) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        question.get("offsets").forEach(each -> offsets.put(partition(each), new OffsetAndMetadata(each.get("offset").asLong())));
        return offsets;
    }

    private static void told(JsonGenerator out, Runnable what) throws IOException {
        what.run();
        out.writeNull();
    }

    /**
     * {"topic", "partition", "records": [[key, value], ...]}: the offset of each, when all are in the log. Without a partition
     * (-1) the producer chooses. All have the same "headers": [[key, value], ...], if there are any.
     */
    private static void send(JsonNode question, JsonGenerator out) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(question);
        TopicPartition place = partition(question);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : question.get("records")) {
            ProducerRecord<byte[], byte[]> made = new ProducerRecord<>(
                place.topic(), place.partition() < 0 ? null : place.partition(), bytes(record.get(0)), bytes(record.get(1)));
            for (JsonNode header : question.path("headers")) {
                made.headers().add(header.get(0).asText(), bytes(header.get(1)));
            }
            sent.add(producer.send(made));
        }
        producer.flush();
        List<Long> offsets = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            offsets.add(value(each).offset());
        }
        out.writeArray(offsets.stream().mapToLong(Long::longValue).toArray(), 0, offsets.size());
    }

    static <T> T value(Future<T> future) throws Exception {
        try {
            return future.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        } catch (ExecutionException failure) {
            throw failure.getCause() instanceof Exception cause ? cause : failure;
        }
    }

    private static byte[] bytes(JsonNode node) throws IOException {
        return node.isNull() ? null : node.binaryValue();
    }

    /** {"wait"}: whether to end what it has open, as Kafka's producers do, or to leave it. */
    private static void close(JsonNode question, JsonGenerator out) throws IOException {
        PRODUCERS.remove(name(question)).close(question.get("wait").asBoolean() ? PATIENCE : Duration.ZERO);
        out.writeNull();
    }

    /** All that a consumer is given of a partition, and the offset behind the last that it may see. */
    private static void read(JsonNode question, JsonGenerator out) throws IOException {
        TopicPartition place = partition(question);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(question)) {
            consumer.assign(List.of(place));
            consumer.seekToBeginning(List.of(place));
            out.writeStartObject();
            out.writeNumberField("end", consumer.endOffsets(List.of(place), PATIENCE).get(place));
            out.writeArrayFieldStart("records");
            drain(consumer, out);
            out.writeEndArray();
            out.writeEndObject();
        }
    }

    /** {"topic"}: all that is left for a group to read, which is committed then. */
    private static void join(JsonNode question, JsonGenerator out) throws IOException {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(question)) {
            consumer.subscribe(List.of(question.get("topic").asText()));
            out.writeStartArray();
            drain(consumer, out);
            out.writeEndArray();
            consumer.commitSync(PATIENCE);
        }
    }

    /** {"topic", "count"}: so many records for a share group, from the first on, each of which is acknowledged. */
    private static void share(JsonNode question, JsonGenerator out) throws Exception {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        ConfigResource group = new ConfigResource(
            ConfigResource.Type.GROUP, config(question).get("group.id").toString());
        AlterConfigOp earliest = new AlterConfigOp(
            new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
        try (Admin admin = Admin.create(config(question))) {
            value(admin.incrementalAlterConfigs(Map.of(group, List.of(earliest))).all().toCompletionStage()
                .toCompletableFuture());
        }
        int left = question.get("count").asInt();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(
            config(question), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(question.get("topic").asText()));
            while (left > 0) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("the share group still waits for " + left + " records");
                }
                left -= consumer.poll(Duration.ofMillis(50)).count();
            }
            consumer.commitSync(PATIENCE);
        }
        out.writeNull();
    }

    static KafkaConsumer<byte[], byte[]> consumer(JsonNode question) {
        return new KafkaConsumer<>(config(question), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Reads to where the partitions end now. */
    private static void drain(KafkaConsumer<byte[], byte[]> consumer, JsonGenerator out) throws IOException {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        Map<TopicPartition, Long> ends = null;
        while (ends == null || ends.entrySet().stream().anyMatch(
            end -> consumer.position(end.getKey(), PATIENCE) < end.getValue())) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("the consumer does not get to " + ends);
            }
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(50))) {
                write(record, out);
            }
            if (ends == null && !consumer.assignment().isEmpty()) {
                ends = consumer.endOffsets(consumer.assignment(), PATIENCE);
            }
        }
    }

    private static void write(ConsumerRecord<byte[], byte[]> record, JsonGenerator out) throws IOException {
        out.writeStartArray();
        out.writeNumber(record.offset());
        out.writeNumber(record.timestamp());
        write(record.key(), out);
        write(record.value(), out);
        out.writeStartArray();
        for (Header header : record.headers()) {
            out.writeStartArray();
            out.writeString(header.key());
            write(header.value(), out);
            out.writeEndArray();
        }
        out.writeEndArray();
        out.writeEndArray();
    }

    private static void write(byte[] bytes, JsonGenerator out) throws IOException {
        if (bytes == null) {
            out.writeNull();
        } else {
            out.writeBinary(bytes);
        }
    }
}
