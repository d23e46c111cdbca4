package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.function.Supplier;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.storage.internals.log.LogValidator.MetricsRecorder;

/** What the Storage classes of the releases with a broker share. Compiled for those alone. */
final class Broker {
    static final MetricsRecorder NO_METRICS = new MetricsRecorder() {
        @Override
        public void recordInvalidMagic() {
        }

        @Override
        public void recordInvalidOffset() {
        }

        @Override
        public void recordInvalidSequence() {
        }

        @Override
        public void recordInvalidChecksums() {
        }

        @Override
        public void recordNoKeyCompactedTopic() {
        }
    };

    private Broker() {
    }

    static MemoryRecords records(JsonNode question) throws IOException {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(question.get("buffer").binaryValue()));
    }

    static void validated(MemoryRecords records, long maxTimestamp, boolean rewritten, JsonGenerator out) throws IOException {
        out.writeStartObject();
        out.writeBinaryField("bytes", Utils.toArray(records.buffer()));
        out.writeNumberField("maxTimestamp", maxTimestamp);
        out.writeBooleanField("sizeMayHaveChanged", rewritten);
        out.writeEndObject();
    }

    /** A clock that stands still, so that the same question has the same answer. */
    static Time clock(long now) {
        return new Time() {
            @Override
            public long milliseconds() {
                return now;
            }

            @Override
            public long nanoseconds() {
                return now * 1_000_000;
            }

            @Override
            public void sleep(long duration) {
                throw new UnsupportedOperationException();
            }

            @Override
            public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
                throw new UnsupportedOperationException();
            }
        };
    }
}
