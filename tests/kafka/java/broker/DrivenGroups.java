package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The calls of a driver for members of groups. */
final class DrivenGroups {
    private static final Duration POLL = Duration.ofMillis(50);
    private static final Map<Integer, KafkaConsumer<byte[], byte[]>> MEMBERS = new HashMap<>();
    private static int last;

    private DrivenGroups() {
    }

    static void register(Map<String, Driver.Call> calls) {
        calls.put("groups.join", DrivenGroups::join);
        calls.put("groups.poll", DrivenGroups::poll);
        calls.put("groups.commit", DrivenGroups::commit);
        calls.put("groups.leave", (request, out) -> {
            MEMBERS.remove(request.get("member").asInt()).close();
            out.writeNull();
        });
    }

    static KafkaConsumer<byte[], byte[]> member(JsonNode request) {
        return MEMBERS.get(request.get("member").asInt());
    }

    private static void join(JsonNode request, JsonGenerator out) throws IOException {
        JsonNode settings = request.get("settings");
        boolean isClassic = settings.path("protocol").asText("classic").equals("classic");
        String pattern = settings.path("pattern").asText("");
        Map<String, Object> config = Driver.common();
        config.put("group.id", request.get("group").asText());
        config.put("group.protocol", isClassic ? "classic" : "consumer");
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", String.valueOf(settings.path("auto_commit").asBoolean(false)));
        config.put("auto.commit.interval.ms", "100");
        config.put("fetch.max.wait.ms", "50");
        config.put("metadata.max.age.ms", pattern.equals("client") ? "500" : "300000");
        config.put("isolation.level", settings.path("read_committed").asBoolean(false) ? "read_committed" : "read_uncommitted");
        if (settings.has("instance_id")) {
            config.put("group.instance.id", settings.get("instance_id").asText());
        }
        if (isClassic) {
            boolean cooperates = settings.path("assignor").asText("").equals("cooperative-sticky");
            Class<?> assignor = cooperates ? CooperativeStickyAssignor.class : RangeAssignor.class;
            config.put("partition.assignment.strategy", assignor.getName());
            config.put("heartbeat.interval.ms", "100");
            config.put("session.timeout.ms", settings.path("session_ms").asText("6000"));
        }
        var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        String first = request.get("topics").get(0).asText();
        switch (pattern) {
            case "client" -> consumer.subscribe(Pattern.compile(first));
            case "server" -> consumer.subscribe(new SubscriptionPattern(first));
            default -> {
                List<String> topics = new ArrayList<>();
                request.get("topics").forEach(topic -> topics.add(topic.asText()));
                consumer.subscribe(topics);
            }
        }
        MEMBERS.put(++last, consumer);
        out.writeNumber(last);
    }

    private static void poll(JsonNode request, JsonGenerator out) throws IOException {
        KafkaConsumer<byte[], byte[]> consumer = member(request);
        ConsumerRecords<byte[], byte[]> polled = consumer.poll(POLL);
        out.writeStartObject();
        out.writeArrayFieldStart("records");
        for (ConsumerRecord<byte[], byte[]> record : polled) {
            DrivenRecords.write(record, out);
        }
        out.writeEndArray();
        out.writeFieldName("assignment");
        write(consumer.assignment(), out);
        out.writeEndObject();
    }

    private static void commit(JsonNode request, JsonGenerator out) throws IOException {
        if (request.get("wait").asBoolean()) {
            member(request).commitSync(DrivenRecords.PATIENCE);
        } else {
            member(request).commitAsync();
        }
        out.writeNull();
    }

    static void write(Iterable<TopicPartition> places, JsonGenerator out) throws IOException {
        out.writeStartArray();
        for (TopicPartition place : places) {
            write(place, out);
        }
        out.writeEndArray();
    }

    static void write(TopicPartition place, JsonGenerator out) throws IOException {
        out.writeStartArray();
        out.writeString(place.topic());
        out.writeNumber(place.partition());
        out.writeEndArray();
    }
}
