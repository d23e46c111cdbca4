package org.apache.spark.kafka010;

import java.util.HashMap;
import java.util.Map;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Settings for a Kafka client, one after the other; authentication there is none. */
public final class KafkaConfigUpdater {
    private final Map<String, Object> settings;

    public KafkaConfigUpdater(String module, scala.collection.immutable.Map<String, Object> settings) {
        this.settings = new HashMap<>(CollectionConverters.asJava(settings));
    }

    public KafkaConfigUpdater set(String name, Object value) {
        settings.put(name, value);
        return this;
    }

    public KafkaConfigUpdater setIfUnset(String name, Object value) {
        settings.putIfAbsent(name, value);
        return this;
    }

    public KafkaConfigUpdater setAuthenticationConfigIfNeeded() {
        return this;
    }

    public KafkaConfigUpdater setAuthenticationConfigIfNeeded(Option<?> cluster) {
        return this;
    }

    public Map<String, Object> build() {
        return settings;
    }
}
