package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;

/** The client library alone neither validates nor converts. */
final class Storage {
    private Storage() {
    }

    static void validate(JsonNode question, JsonGenerator out) {
        throw new UnsupportedOperationException("LogValidator is part of the broker: ask the broker or the legacy release");
    }

    static void downConvert(JsonNode question, JsonGenerator out) {
        throw new UnsupportedOperationException("Kafka 4 converts no records down: ask the legacy release");
    }
}
