package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;

/** The client library alone neither validates nor converts. */
final class Storage {
    private Storage() {
    }

    /** What else can be asked of this release. */
    static void register(Map<String, Judge.Operation> operations) {
    }

    static void validate(JsonNode question, JsonGenerator out) {
        throw new UnsupportedOperationException("LogValidator is part of the broker: ask the broker or the legacy release");
    }

    static void downConvert(JsonNode question, JsonGenerator out) {
        throw new UnsupportedOperationException("Kafka 4 converts no records down: ask the legacy release");
    }
}
