package judge;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.util.Collection;
import java.util.Comparator;
import java.util.Map;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.BatchMetadata;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;

/** What a log knows of its producers and their transactions, and the files that it keeps this in. */
final class Producers {
    private Producers() {
    }

    static void register(Map<String, Judge.Operation> operations) {
        Logs.put(operations, "producers", Producers::producers);
        Logs.put(operations, "expire", (log, question, out) -> log.log.removeExpiredProducers(log.clock.milliseconds()));
        operations.put("log.snapshot", (question, out) -> Logs.guarded(out, () -> snapshot(question, out)));
    }

    private static void producers(Logs log, JsonNode question, JsonGenerator out) throws IOException {
        ProducerStateManager states = log.log.producerStateManager();
        entries(states.activeProducers().values(), out);
        out.writeNumberField("lastStableOffset", log.log.lastStableOffset());
        out.writeNumberField("firstUnstableOffset", log.log.firstUnstableOffset().orElse(-1L));
        out.writeArrayFieldStart("aborted");
        for (LogSegment segment : log.log.logSegments()) {
            for (AbortedTxn entry : segment.txnIndex().allAbortedTxns()) {
                out.writeArray(new long[] {
                    segment.baseOffset(), entry.producerId(), entry.firstOffset(), entry.lastOffset(), entry.lastStableOffset()},
                    0, 5);
            }
        }
        out.writeEndArray();
    }

    /** {"path"}: what Kafka reads in a file of producer state. */
    private static void snapshot(JsonNode question, JsonGenerator out) throws IOException {
        entries(ProducerStateManager.readSnapshot(new File(question.get("path").asText())), out);
    }

    private static void entries(Collection<ProducerStateEntry> entries, JsonGenerator out) throws IOException {
        out.writeArrayFieldStart("producers");
        for (ProducerStateEntry entry : entries.stream().sorted(Comparator.comparing(ProducerStateEntry::producerId)).toList()) {
            out.writeStartObject();
            out.writeNumberField("id", entry.producerId());
            out.writeNumberField("epoch", entry.producerEpoch());
            out.writeNumberField("coordinatorEpoch", entry.coordinatorEpoch());
            out.writeNumberField("lastTimestamp", entry.lastTimestamp());
            out.writeNumberField("firstOffset", entry.currentTxnFirstOffset().orElse(-1));
            out.writeArrayFieldStart("batches");
            for (BatchMetadata batch : entry.batchMetadata()) {
                out.writeArray(
                    new long[] {batch.firstSeq(), batch.lastSeq(), batch.firstOffset(), batch.lastOffset(), batch.timestamp()}, 0, 5);
            }
            out.writeEndArray();
            out.writeEndObject();
        }
        out.writeEndArray();
    }

    /** The aborted transactions that a reader of committed records is told of; null where it is not told of any. */
    static void aborted(FetchDataInfo info, JsonGenerator out) throws IOException {
        if (info.abortedTransactions.isPresent()) {
            out.writeArrayFieldStart("aborted");
            for (FetchResponseData.AbortedTransaction aborted : info.abortedTransactions.get()) {
                out.writeArray(new long[] {aborted.producerId(), aborted.firstOffset()}, 0, 2);
            }
            out.writeEndArray();
        } else {
            out.writeNullField("aborted");
        }
    }
}
