package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** The calls of a driver that administer groups. */
final class DrivenGroupAdmin {
    private DrivenGroupAdmin() {
    }

    static void register(Map<String, Driver.Call> calls) {
        calls.put("groups.list_groups", DrivenGroupAdmin::list);
        calls.put("groups.describe_group", DrivenGroupAdmin::describe);
        calls.put("groups.committed", DrivenGroupAdmin::committed);
        calls.put("groups.set_offsets", DrivenGroupAdmin::setOffsets);
        calls.put("groups.delete_offsets", (request, out) -> DrivenAdmin.done(out, DrivenAdmin.admin()
            .deleteConsumerGroupOffsets(group(request), Set.of(place(request.get("place")))).all()));
        calls.put("groups.delete_group", (request, out) -> DrivenAdmin.done(out, DrivenAdmin.admin()
            .deleteConsumerGroups(List.of(group(request))).all()));
    }

    private static String group(JsonNode request) {
        return request.get("group").asText();
    }

    private static TopicPartition place(JsonNode pair) {
        return new TopicPartition(pair.get(0).asText(), pair.get(1).asInt());
    }

    private static void list(JsonNode request, JsonGenerator out) throws Exception {
        out.writeStartArray();
        for (GroupListing group : DrivenAdmin.value(DrivenAdmin.admin().listGroups().all())) {
            out.writeString(group.groupId());
        }
        out.writeEndArray();
    }

    private static void describe(JsonNode request, JsonGenerator out) throws Exception {
        ConsumerGroupDescription found = DrivenAdmin.value(
            DrivenAdmin.admin().describeConsumerGroups(List.of(group(request))).all()).get(group(request));
        out.writeStartObject();
        out.writeStringField("state", found.groupState().toString().toLowerCase());
        out.writeArrayFieldStart("assignments");
        for (MemberDescription member : found.members()) {
            DrivenGroups.write(member.assignment().topicPartitions(), out);
        }
        out.writeEndArray();
        out.writeEndObject();
    }

    private static void committed(JsonNode request, JsonGenerator out) throws Exception {
        var found = DrivenAdmin.value(
            DrivenAdmin.admin().listConsumerGroupOffsets(group(request)).partitionsToOffsetAndMetadata());
        out.writeStartArray();
        for (Map.Entry<TopicPartition, OffsetAndMetadata> each : found.entrySet()) {
            out.writeStartArray();
            DrivenGroups.write(each.getKey(), out);
            out.writeNumber(each.getValue().offset());
            out.writeEndArray();
        }
        out.writeEndArray();
    }

    private static void setOffsets(JsonNode request, JsonGenerator out) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        request.get("offsets").forEach(each -> offsets.put(place(each.get(0)), new OffsetAndMetadata(each.get(1).asLong())));
        DrivenAdmin.done(out, DrivenAdmin.admin().alterConsumerGroupOffsets(group(request), offsets).all());
    }
}
