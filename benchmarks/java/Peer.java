import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;

/**
 * Apache Kafka as a peer of the benchmarks: writes their data, and reads them as its consumer does. One command a line
 * comes in, one line goes out; words are separated by tabs. The end of standard input ends the process.
 *
 *   write PATH CODEC RECORDS BATCH VALUE    a file of RECORDS records in batches of BATCH with values of about VALUE bytes;
 *                                           CODEC may be "mixed": each batch has the next one
 *   load PATH                               reads a file into memory
 *   warm SECONDS                            passes over it, so that all is compiled
 *   touch | copy                            one pass over all records with checksums verified, which looks at the
 *                                           key and value of each, or copies them: "nanoseconds records bytes"
 */
public final class Peer {
    private static final String[] SECTIONS = {"garden", "kitchen", "books", "music", "outdoor", "toys", "office"};
    private static final String[] THINGS = {"lamp", "chair", "kettle", "guitar", "tent", "atlas", "train", "desk", "rug"};
    private static final String[] COUNTRIES = {"DE", "FR", "CZ", "AT", "US", "JP", "BR", "IN"};
    private static final int[] STATUS = {200, 200, 200, 200, 200, 200, 204, 304, 404, 500};

    private static ByteBuffer data;
    private static long records;
    private static long bytes;
    private static byte[] lastKey;
    private static byte[] lastValue;

    private Peer() {
    }

    public static void main(String[] args) throws IOException {
        PrintStream answers = System.out;
        System.setOut(System.err); // whatever a library prints is no answer
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            answers.println(answer(line.split("\t")));
            answers.flush();
        }
    }

    private static String answer(String[] command) throws IOException {
        switch (command[0]) {
            case "write":
                return write(Path.of(command[1]), command[2], Integer.parseInt(command[3]),
                    Integer.parseInt(command[4]), Integer.parseInt(command[5]));
            case "load":
                data = ByteBuffer.wrap(Files.readAllBytes(Path.of(command[1])));
                return "loaded " + data.remaining();
            case "warm":
                return warm(Double.parseDouble(command[1]));
            default:
                return pass(command[0].equals("copy"));
        }
    }

    // Reading

    private static String warm(double seconds) {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        int passes = 0;
        while (passes < 40 || System.nanoTime() < end) {
            pass(passes++ % 2 == 0);
        }
        return "warm after " + passes;
    }

    private static String pass(boolean copy) {
        records = bytes = 0;
        long begin = System.nanoTime();
        BufferSupplier buffers = BufferSupplier.create();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(data.duplicate()).batches()) {
            batch.ensureValid();
            try (CloseableIterator<Record> iterator = batch.streamingIterator(buffers)) {
                if (copy) {
                    copy(iterator);
                } else {
                    touch(iterator);
                }
            }
        }
        buffers.close();
        return System.nanoTime() - begin + " " + records + " " + bytes;
    }

    private static void touch(Iterator<Record> iterator) {
        while (iterator.hasNext()) {
            Record record = iterator.next();
            records++;
            bytes += record.key().remaining() + record.value().remaining();
        }
    }

    private static void copy(Iterator<Record> iterator) {
        while (iterator.hasNext()) {
            Record record = iterator.next();
            lastKey = Utils.toArray(record.key()); // kept, so that no compiler takes the copies for idle
            lastValue = Utils.toArray(record.value());
            records++;
            bytes += lastKey.length + lastValue.length;
        }
    }

    // Writing

    private static String write(Path path, String codec, int count, int batch, int valueSize) throws IOException {
        Random random = new Random(31);
        long timestamp = 1_700_000_000_000L;
        long size = 0;
        ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
        try (OutputStream out = Files.newOutputStream(path)) {
            for (int offset = 0; offset < count; ) {
                buffer.clear();
                MemoryRecordsBuilder builder = MemoryRecords.builder(
                    buffer, codec(codec, offset / batch), TimestampType.CREATE_TIME, offset);
                for (int end = Math.min(offset + batch, count); offset < end; offset++) {
                    int user = random.nextInt(50_000);
                    timestamp += random.nextInt(4);
                    builder.append(timestamp, key(user), value(random, user, valueSize));
                }
                ByteBuffer built = builder.build().buffer();
                out.write(built.array(), built.arrayOffset() + built.position(), built.remaining());
                size += built.remaining();
            }
        }
        return "wrote " + size;
    }

    private static Compression codec(String name, int batch) {
        CompressionType[] all = CompressionType.values();
        CompressionType type = name.equals("mixed") ? all[batch % all.length] : CompressionType.forName(name);
        return Compression.of(type).build();
    }

    private static byte[] key(int user) {
        return ("user" + (10_000_000 + user)).getBytes(StandardCharsets.US_ASCII);
    }

    /** Events as JSON, as many as it takes, cut off at `size` give or take an eighth. */
    private static byte[] value(Random random, int user, int size) {
        StringBuilder text = new StringBuilder(size + 200);
        int length = size + random.nextInt(size / 4 + 1) - size / 8;
        while (text.length() < length) {
            text.append("{\"user\":").append(user)
                .append(",\"path\":\"/").append(SECTIONS[random.nextInt(SECTIONS.length)])
                .append('/').append(THINGS[random.nextInt(THINGS.length)])
                .append("\",\"status\":").append(STATUS[random.nextInt(STATUS.length)])
                .append(",\"micros\":").append(random.nextInt(100_000))
                .append(",\"trace\":\"").append(Long.toHexString(random.nextLong() | 1L << 63))
                .append("\",\"country\":\"").append(COUNTRIES[random.nextInt(COUNTRIES.length)])
                .append("\"}\n");
        }
        text.setLength(length);
        return text.toString().getBytes(StandardCharsets.US_ASCII);
    }
}
