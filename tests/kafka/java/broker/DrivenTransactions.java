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
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The calls of a driver for transactional producers. */
final class DrivenTransactions {
    private static final Map<Integer, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();
    private static int last;

    private DrivenTransactions() {
    }

    static void register(Map<String, Driver.Call> calls) {
        calls.put("transactions.open", DrivenTransactions::open);
        calls.put("transactions.begin", (request, out) -> {
            producer(request).beginTransaction();
            out.writeNull();
        });
        calls.put("transactions.send", DrivenTransactions::send);
        calls.put("transactions.send_offsets", DrivenTransactions::sendOffsets);
        calls.put("transactions.end", (request, out) -> {
            if (request.get("commit").asBoolean()) {
                producer(request).commitTransaction();
            } else {
                producer(request).abortTransaction();
            }
            out.writeNull();
        });
        calls.put("transactions.close", (request, out) -> {
            PRODUCERS.remove(request.get("producer").asInt()).close(Duration.ZERO);
            out.writeNull();
        });
    }

    private static KafkaProducer<byte[], byte[]> producer(JsonNode request) {
        return PRODUCERS.get(request.get("producer").asInt());
    }

    private static void open(JsonNode request, JsonGenerator out) throws IOException {
        Map<String, Object> config = Driver.common();
        config.put("transactional.id", request.get("transactional_id").asText());
        config.put("transaction.timeout.ms", request.get("timeout_ms").asText());
        config.put("max.block.ms", String.valueOf(DrivenRecords.PATIENCE.toMillis()));
        var producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        producer.initTransactions();
        PRODUCERS.put(++last, producer);
        out.writeNumber(last);
    }

    private static void send(JsonNode request, JsonGenerator out) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : request.get("records")) {
            sent.add(producer(request).send(new ProducerRecord<>(
                request.get("topic").asText(), record.get("partition").asInt(),
                DrivenRecords.bytes(record.get("key")), DrivenRecords.bytes(record.get("value")))));
        }
        producer(request).flush();
        for (Future<RecordMetadata> each : sent) {
            each.get(DrivenRecords.PATIENCE.toSeconds(), TimeUnit.SECONDS);
        }
        out.writeNull();
    }

    private static void sendOffsets(JsonNode request, JsonGenerator out) throws IOException {
        KafkaConsumer<byte[], byte[]> member = DrivenGroups.member(request);
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition place : member.assignment()) {
            offsets.put(place, new OffsetAndMetadata(member.position(place)));
        }
        producer(request).sendOffsetsToTransaction(offsets, member.groupMetadata());
        out.writeNull();
    }
}
