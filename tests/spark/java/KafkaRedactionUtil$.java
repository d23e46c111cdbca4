package org.apache.spark.kafka010;

import scala.collection.immutable.Seq;

/** Hides nothing of what is logged: there are no secrets here. */
public final class KafkaRedactionUtil$ {
    public static final KafkaRedactionUtil$ MODULE$ = new KafkaRedactionUtil$();

    public Seq<?> redactParams(Seq<?> settings) {
        return settings;
    }
}
