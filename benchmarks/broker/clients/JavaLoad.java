import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Produces or fetches with Kafka's own client, one pass per line of standard input, and prints the nanoseconds it took.
 *
 * <p>The fields are separated by tabs: produce or fetch, topic, partitions, count, size of values, file of values, then
 * PROPERTY=VALUE of the client. It stays for many passes, so that its code is compiled.
 */
public final class JavaLoad {
    public static void main(String[] args) {
        try {
            serve();
        } catch (Exception error) { // Java's launcher of source files hides what it does not expect
            error.printStackTrace();
            System.exit(1);
        }
    }

    private static void serve() throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            Properties properties = new Properties();
            for (int i = 6; i < words.length; i++) {
                int equals = words[i].indexOf('=');
                properties.setProperty(words[i].substring(0, equals), words[i].substring(equals + 1));
            }
            int partitions = Integer.parseInt(words[2]);
            long count = Long.parseLong(words[3]);
            long taken = words[0].equals("produce")
                ? produce(properties, words[1], partitions, count, Integer.parseInt(words[4]), Path.of(words[5]))
                : fetch(properties, words[1], partitions, count);
            System.out.println(taken);
            System.out.flush();
        }
    }

    private static long produce(
            Properties properties, String topic, int partitions, long count, int size, Path path) throws Exception {
        byte[] all = Files.readAllBytes(path);
        byte[][] values = new byte[all.length / size][];
        for (int i = 0; i < values.length; i++) {
            values[i] = java.util.Arrays.copyOfRange(all, i * size, (i + 1) * size);
        }
        AtomicReference<Exception> failure = new AtomicReference<>();
        try (var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.partitionsFor(topic);
            long begin = System.nanoTime();
            for (long i = 0; i < count; i++) {
                byte[] value = values[(int) (i % values.length)];
                producer.send(new ProducerRecord<>(topic, (int) (i % partitions), null, value), (done, error) -> {
                    if (error != null) {
                        failure.set(error);
                    }
                });
            }
            producer.flush();
            long taken = System.nanoTime() - begin;
            if (failure.get() != null) {
                throw failure.get();
            }
            return taken;
        }
    }

    private static long fetch(Properties properties, String topic, int partitions, long count) {
        List<TopicPartition> assigned = new ArrayList<>();
        for (int i = 0; i < partitions; i++) {
            assigned.add(new TopicPartition(topic, i));
        }
        try (var consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.partitionsFor(topic);
            consumer.assign(assigned);
            consumer.seekToBeginning(assigned);
            long begin = System.nanoTime();
            long left = count;
            while (left > 0) {
                int several = consumer.poll(Duration.ofSeconds(60)).count();
                if (several == 0) {
                    throw new IllegalStateException("nothing came");
                }
                left -= several;
            }
            return System.nanoTime() - begin;
        }
    }

    private JavaLoad() {}
}
