package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.common.TopicPartition;

/** What a broker says of producers, transactions and groups when it is asked over the network. */
final class Administration {
    /** What is asked of a broker. */
    @FunctionalInterface
    private interface Question {
        void answer(Admin admin, JsonNode question, JsonGenerator out) throws Exception;
    }

    private Administration() {
    }

    static void register(Map<String, Judge.Operation> operations) {
        put(operations, "create", Administration::create);
        put(operations, "producers", Administration::producers);
        put(operations, "transaction", Administration::transaction);
        put(operations, "abort", Administration::abort);
        put(operations, "committed", Administration::committed);
        put(operations, "forget", Administration::forget);
    }

    private static void put(Map<String, Judge.Operation> operations, String name, Question question) {
        operations.put("admin." + name, (asked, out) -> {
            try (Admin admin = Admin.create(Clients.config(asked))) {
                question.answer(admin, asked, out);
            }
        });
    }

    /** {"topic", "partitions", "settings"}: a new topic. */
    private static void create(Admin admin, JsonNode question, JsonGenerator out) throws Exception {
        NewTopic topic = new NewTopic(question.get("topic").asText(), question.get("partitions").asInt(), (short) 1);
        Map<String, String> settings = new HashMap<>();
        question.get("settings").properties().forEach(entry -> settings.put(entry.getKey(), entry.getValue().asText()));
        Clients.value(admin.createTopics(List.of(topic.configs(settings))).all().toCompletionStage().toCompletableFuture());
        out.writeNull();
    }

    /** {"topic", "partition"}: the producers that the partition's leader knows. */
    private static void producers(Admin admin, JsonNode question, JsonGenerator out) throws Exception {
        TopicPartition place = Clients.partition(question);
        List<ProducerState> states = Clients.value(
            admin.describeProducers(List.of(place)).partitionResult(place).toCompletionStage().toCompletableFuture())
            .activeProducers();
        out.writeStartArray();
        for (ProducerState state : states.stream().sorted(Comparator.comparing(ProducerState::producerId)).toList()) {
            out.writeArray(new long[] {
                state.producerId(),
                state.producerEpoch(),
                state.lastSequence(),
                state.lastTimestamp(),
                state.coordinatorEpoch().orElse(-1),
                state.currentTransactionStartOffset().orElse(-1),
            }, 0, 6);
        }
        out.writeEndArray();
    }

    /** {"id"}: what the coordinator knows of a transactional id. */
    private static void transaction(Admin admin, JsonNode question, JsonGenerator out) throws Exception {
        String id = question.get("id").asText();
        TransactionDescription told = Clients.value(
            admin.describeTransactions(List.of(id)).description(id).toCompletionStage().toCompletableFuture());
        out.writeStartObject();
        out.writeStringField("state", told.state().toString());
        out.writeNumberField("producer", told.producerId());
        out.writeNumberField("epoch", told.producerEpoch());
        out.writeArrayFieldStart("partitions");
        for (String partition : told.topicPartitions().stream().map(TopicPartition::toString).sorted().toList()) {
            out.writeString(partition);
        }
        out.writeEndArray();
        out.writeEndObject();
    }

    /** {"topic", "partition", "producer", "epoch", "coordinatorEpoch"}: ends a transaction that nobody else will end. */
    private static void abort(Admin admin, JsonNode question, JsonGenerator out) throws Exception {
        AbortTransactionSpec hanging = new AbortTransactionSpec(
            Clients.partition(question),
            question.get("producer").asLong(),
            (short) question.get("epoch").asInt(),
            question.get("coordinatorEpoch").asInt());
        Clients.value(admin.abortTransaction(hanging).all().toCompletionStage().toCompletableFuture());
        out.writeNull();
    }

    /** {"group"}: where it is in each partition. */
    private static void committed(Admin admin, JsonNode question, JsonGenerator out) throws Exception {
        out.writeStartObject();
        var offsets = Clients.value(admin.listConsumerGroupOffsets(question.get("group").asText())
            .partitionsToOffsetAndMetadata().toCompletionStage().toCompletableFuture());
        for (var entry : offsets.entrySet()) {
            out.writeArrayFieldStart(entry.getKey().toString());
            out.writeNumber(entry.getValue().offset());
            out.writeString(entry.getValue().metadata());
            out.writeEndArray();
        }
        out.writeEndObject();
    }

    /** {"group"}: deletes it. */
    private static void forget(Admin admin, JsonNode question, JsonGenerator out) throws Exception {
        Clients.value(admin.deleteConsumerGroups(List.of(question.get("group").asText()))
            .all().toCompletionStage().toCompletableFuture());
        out.writeNull();
    }
}
