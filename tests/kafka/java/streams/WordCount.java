package judge;

import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * An application of Kafka Streams that counts words: from the topic "lines", over a repartition topic by words and a
 * store with a changelog, to the topic "counts". Each argument is a setting, name=value. A line is printed for each state,
 * and for each exception that a thread ends with. It runs until its input ends.
 */
public final class WordCount {
    private WordCount() {
    }

    public static void main(String[] settings) throws IOException {
        Properties config = new Properties();
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        for (String setting : settings) {
            int at = setting.indexOf('=');
            config.put(setting.substring(0, at), setting.substring(at + 1));
        }
        KafkaStreams application = new KafkaStreams(topology(), config);
        application.setStateListener((now, before) -> System.out.println(now));
        application.setUncaughtExceptionHandler(failure -> {
            for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
                System.out.println(("FAILED " + cause).replace('\n', ' '));
            }
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        application.start();
        while (System.in.read() >= 0) {
            // only the end of the input matters
        }
        System.exit(application.close(Duration.ofSeconds(30)) ? 0 : 1);
    }

    private static org.apache.kafka.streams.Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("lines", Consumed.with(Serdes.ByteArray(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()).withCachingDisabled())
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to("counts", Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }
}
