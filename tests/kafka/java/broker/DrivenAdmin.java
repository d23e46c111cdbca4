package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The calls of a driver that administer. */
final class DrivenAdmin {
    private static Admin admin;

    private DrivenAdmin() {
    }

    static void register(Map<String, Driver.Call> calls) {
        calls.put("create_topic", DrivenAdmin::createTopic);
        calls.put("list_topics", DrivenAdmin::listTopics);
        calls.put("add_partitions", (request, out) -> done(out, admin().createPartitions(
            Map.of(topic(request), NewPartitions.increaseTo(request.get("total").asInt()))).all()));
        calls.put("delete_topic", (request, out) -> done(out, admin().deleteTopics(List.of(topic(request))).all()));
        calls.put("describe_config", DrivenAdmin::describeConfig);
        calls.put("replace_config", (request, out) -> {
            throw new Driver.CannotDo("the Java client has no call for AlterConfigs since 4.0");
        });
        calls.put("change_config", DrivenAdmin::changeConfig);
        calls.put("delete_records", DrivenAdmin::deleteRecords);
    }

    static Admin admin() {
        if (admin == null) {
            admin = Admin.create(Driver.common());
        }
        return admin;
    }

    private static String topic(JsonNode request) {
        return request.get("topic").asText();
    }

    static <T> T value(KafkaFuture<T> future) throws Exception {
        return future.get(30, TimeUnit.SECONDS);
    }

    static void done(JsonGenerator out, KafkaFuture<Void> future) throws Exception {
        value(future);
        out.writeNull();
    }

    private static void createTopic(JsonNode request, JsonGenerator out) throws Exception {
        Map<String, String> config = new HashMap<>();
        request.get("config").properties().forEach(each -> config.put(each.getKey(), each.getValue().asText()));
        NewTopic topic = new NewTopic(topic(request), request.get("partitions").asInt(), (short) 1).configs(config);
        done(out, admin().createTopics(List.of(topic)).all());
    }

    private static void listTopics(JsonNode request, JsonGenerator out) throws Exception {
        out.writeStartArray();
        for (String name : value(admin().listTopics().names())) {
            out.writeString(name);
        }
        out.writeEndArray();
    }

    private static ConfigResource resource(JsonNode request) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic(request));
    }

    private static void describeConfig(JsonNode request, JsonGenerator out) throws Exception {
        ConfigResource resource = resource(request);
        out.writeStartObject();
        for (ConfigEntry entry : value(admin().describeConfigs(List.of(resource)).all()).get(resource).entries()) {
            out.writeStringField(entry.name(), entry.value());
        }
        out.writeEndObject();
    }

    private static void changeConfig(JsonNode request, JsonGenerator out) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        request.get("config").properties().forEach(each -> {
            boolean isGone = each.getValue().isNull();
            changes.add(new AlterConfigOp(
                new ConfigEntry(each.getKey(), isGone ? null : each.getValue().asText()),
                isGone ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET));
        });
        done(out, admin().incrementalAlterConfigs(Map.of(resource(request), changes)).all());
    }

    private static void deleteRecords(JsonNode request, JsonGenerator out) throws Exception {
        TopicPartition place = new TopicPartition(topic(request), request.get("partition").asInt());
        RecordsToDelete before = RecordsToDelete.beforeOffset(request.get("before").asLong());
        out.writeNumber(value(admin().deleteRecords(Map.of(place, before)).lowWatermarks().get(place)).lowWatermark());
    }
}
