package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Members of groups that stay: a question names its member by the "client" that "member.open" was asked with. What it
 * throws is the answer.
 */
final class Members {
    private static final Duration A_MOMENT = Duration.ofMillis(100);
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final Map<String, KafkaConsumer<byte[], byte[]>> MEMBERS = new HashMap<>();

    private Members() {
    }

    static void register(Map<String, Judge.Operation> operations) {
        operations.put("member.open", (question, out) -> {
            KafkaConsumer<byte[], byte[]> member = Clients.consumer(question);
            member.subscribe(List.of(question.get("topic").asText()));
            MEMBERS.put(question.get("client").asText(), member);
            out.writeNull();
        });
        operations.put("member.poll", Members::poll);
        operations.put("member.transform", Members::transform);
        operations.put("member.close", (question, out) -> {
            MEMBERS.remove(question.get("client").asText()).close(CloseOptions.timeout(Duration.ZERO));
            out.writeNull();
        });
    }

    private static KafkaConsumer<byte[], byte[]> member(JsonNode question) {
        return MEMBERS.get(question.get("client").asText());
    }

    /** What there is now: [[partition, value], ...], committed then. */
    private static void poll(JsonNode question, JsonGenerator out) throws IOException {
        ConsumerRecords<byte[], byte[]> found = member(question).poll(A_MOMENT);
        if (!found.isEmpty()) {
            member(question).commitSync(PATIENCE);
        }
        out.writeStartArray();
        for (ConsumerRecord<byte[], byte[]> record : found) {
            out.writeStartArray();
            out.writeNumber(record.partition());
            out.writeBinary(record.value());
            out.writeEndArray();
        }
        out.writeEndArray();
    }

    /** {"producer", "topic"}: write what there is now to another topic, in a transaction with the offsets; how many. */
    private static void transform(JsonNode question, JsonGenerator out) throws Exception {
        ConsumerRecords<byte[], byte[]> found = member(question).poll(A_MOMENT);
        if (!found.isEmpty()) {
            KafkaProducer<byte[], byte[]> producer = Clients.producer(question.get("producer").asText());
            producer.beginTransaction();
            for (ConsumerRecord<byte[], byte[]> record : found) {
                producer.send(new ProducerRecord<>(
                    question.get("topic").asText(), record.partition(), null, record.value()));
            }
            producer.sendOffsetsToTransaction(found.nextOffsets(), member(question).groupMetadata());
            producer.commitTransaction();
        }
        out.writeNumber(found.count());
    }
}
