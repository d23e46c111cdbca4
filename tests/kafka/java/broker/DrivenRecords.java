package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The calls of a driver that produce and consume. */
final class DrivenRecords {
    static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final String LARGEST = String.valueOf(8 << 20); // so that the broker is the one to judge
    private static final Map<String, String> PRODUCE_SETTINGS = Map.of(
        "compression", "compression.type", "acks", "acks", "idempotence", "enable.idempotence", "batch_bytes", "batch.size");
    private static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();

    private DrivenRecords() {
    }

    static void register(Map<String, Driver.Call> calls) {
        calls.put("produce", DrivenRecords::produce);
        calls.put("consume", DrivenRecords::consume);
        calls.put("offset_for_time", DrivenRecords::offsetForTime);
        calls.put("offsets", DrivenRecords::offsets);
        calls.put("partitions", DrivenRecords::partitions);
    }

    private static KafkaProducer<byte[], byte[]> producer(JsonNode request) {
        JsonNode settings = request.get("settings");
        return PRODUCERS.computeIfAbsent(settings.toString(), name -> {
            Map<String, Object> config = Driver.common();
            config.put("linger.ms", "1");
            config.put("max.request.size", LARGEST);
            config.put("delivery.timeout.ms", String.valueOf(PATIENCE.toMillis()));
            config.put("request.timeout.ms", "20000");
            config.put("max.block.ms", String.valueOf(PATIENCE.toMillis()));
            settings.properties().forEach(each -> config.put(PRODUCE_SETTINGS.get(each.getKey()), each.getValue().asText()));
            return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        });
    }

    private static void produce(JsonNode request, JsonGenerator out) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(request);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : request.get("records")) {
            JsonNode time = record.get("timestamp_ms");
            ProducerRecord<byte[], byte[]> made = new ProducerRecord<>(
                request.get("topic").asText(), record.get("partition").asInt(), time.isNull() ? null : time.asLong(),
                bytes(record.get("key")), bytes(record.get("value")));
            for (JsonNode header : record.get("headers")) {
                made.headers().add(header.get(0).asText(), bytes(header.get(1)));
            }
            sent.add(producer.send(made));
        }
        producer.flush();
        out.writeStartArray();
        for (Future<RecordMetadata> each : sent) {
            RecordMetadata told = each.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
            out.writeNumber(told.hasOffset() ? told.offset() : -1);
        }
        out.writeEndArray();
    }

    private static void consume(JsonNode request, JsonGenerator out) throws IOException {
        JsonNode settings = request.get("settings");
        Map<String, String> more = new HashMap<>();
        if (settings.has("partition_bytes")) {
            more.put("max.partition.fetch.bytes", settings.get("partition_bytes").asText());
        }
        if (settings.has("max_wait_ms")) {
            more.put("fetch.max.wait.ms", settings.get("max_wait_ms").asText());
            more.put("request.timeout.ms", String.valueOf(settings.get("max_wait_ms").asInt() + 60_000));
        }
        TopicPartition place = place(request);
        KafkaConsumer<byte[], byte[]> consumer = consumer(more);
        try {
            consumer.assign(List.of(place));
            switch (request.get("start").asText()) {
                case "earliest" -> consumer.seekToBeginning(List.of(place));
                case "latest" -> consumer.seekToEnd(List.of(place));
                default -> consumer.seek(place, request.get("start").asLong());
            }
            int left = request.get("count").asInt();
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (left > 0) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    if (left-- > 0) {
                        Driver.tell("item", item -> write(record, item));
                    }
                    deadline = System.nanoTime() + PATIENCE.toNanos();
                }
                if (left > 0 && System.nanoTime() > deadline) {
                    throw new TimeoutException("no record within " + PATIENCE);
                }
            }
        } finally {
            consumer.close(Duration.ZERO); // a fetch may be waiting at the broker
        }
        out.writeNull();
    }

    private static void offsetForTime(JsonNode request, JsonGenerator out) throws IOException {
        TopicPartition place = place(request);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
            OffsetAndTimestamp found = consumer.offsetsForTimes(
                Map.of(place, request.get("timestamp_ms").asLong()), PATIENCE).get(place);
            if (found == null) {
                out.writeNull();
            } else {
                out.writeNumber(found.offset());
            }
        }
    }

    private static void offsets(JsonNode request, JsonGenerator out) throws IOException {
        TopicPartition place = place(request);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
            out.writeStartArray();
            out.writeNumber(consumer.beginningOffsets(List.of(place), PATIENCE).get(place));
            out.writeNumber(consumer.endOffsets(List.of(place), PATIENCE).get(place));
            out.writeEndArray();
        }
    }

    /** A topic that is created on the way may be there only when it is asked for again. */
    private static void partitions(JsonNode request, JsonGenerator out) throws Exception {
        boolean mayCreate = request.get("may_create").asBoolean();
        Map<String, String> more = Map.of("allow.auto.create.topics", String.valueOf(mayCreate));
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(more)) {
            int found = 0;
            for (int tries = mayCreate ? 20 : 1; tries > 0 && found == 0; tries--) {
                found = consumer.partitionsFor(request.get("topic").asText(), PATIENCE).size();
            }
            out.writeNumber(found);
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(Map<String, String> more) {
        Map<String, Object> config = Driver.common();
        config.put("auto.offset.reset", "earliest");
        config.putAll(more);
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static TopicPartition place(JsonNode request) {
        return new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
    }

    static byte[] bytes(JsonNode node) throws IOException {
        return node.isNull() ? null : node.binaryValue();
    }

    static void write(ConsumerRecord<byte[], byte[]> record, JsonGenerator out) throws IOException {
        out.writeStartObject();
        write("key", record.key(), out);
        write("value", record.value(), out);
        out.writeArrayFieldStart("headers");
        for (Header header : record.headers()) {
            out.writeStartArray();
            out.writeString(header.key());
            write(header.value(), out);
            out.writeEndArray();
        }
        out.writeEndArray();
        out.writeNumberField("timestamp_ms", record.timestamp());
        out.writeStringField("timestamp_type", record.timestampType().toString());
        out.writeNumberField("partition", record.partition());
        out.writeNumberField("offset", record.offset());
        out.writeEndObject();
    }

    private static void write(String field, byte[] bytes, JsonGenerator out) throws IOException {
        out.writeFieldName(field);
        write(bytes, out);
    }

    private static void write(byte[] bytes, JsonGenerator out) throws IOException {
        if (bytes == null) {
            out.writeNull();
        } else {
            out.writeBinary(bytes);
        }
    }
}
