/* Produce or fetch with librdkafka, and print the seconds that it took.
 *
 *     librdkafka_load produce|fetch TOPIC PARTITIONS COUNT VALUE_SIZE VALUES [PROPERTY=VALUE ...]
 *
 * VALUES is a file; record i has the i-th VALUE_SIZE bytes of it as its value, from the beginning again after its end.
 * It is linked with the librdkafka of confluent-kafka's wheel, which has no header: what is used is declared here.
 * Connections are made before the clock starts. It exits with 1 if a record is refused. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_topic_conf_s rd_kafka_topic_conf_t;
typedef struct rd_kafka_queue_s rd_kafka_queue_t;
typedef struct {
    int err;
    rd_kafka_topic_t *rkt;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *private_data;
} rd_kafka_message_t;

rd_kafka_conf_t *rd_kafka_conf_new(void);
int rd_kafka_conf_set(rd_kafka_conf_t *, const char *, const char *, char *, size_t);
void rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *, void (*)(rd_kafka_t *, const rd_kafka_message_t *, void *));
rd_kafka_t *rd_kafka_new(int, rd_kafka_conf_t *, char *, size_t);
rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *, const char *, rd_kafka_topic_conf_t *);
int rd_kafka_produce_batch(rd_kafka_topic_t *, int32_t, int, rd_kafka_message_t *, int);
int rd_kafka_outq_len(rd_kafka_t *);
int rd_kafka_poll(rd_kafka_t *, int);
int rd_kafka_flush(rd_kafka_t *, int);
int rd_kafka_last_error(void);
const char *rd_kafka_err2str(int);
rd_kafka_queue_t *rd_kafka_queue_new(rd_kafka_t *);
int rd_kafka_consume_start_queue(rd_kafka_topic_t *, int32_t, int64_t, rd_kafka_queue_t *);
int rd_kafka_consume_callback_queue(
    rd_kafka_queue_t *, int, void (*)(rd_kafka_message_t *, void *), void *);
int rd_kafka_metadata(rd_kafka_t *, int, rd_kafka_topic_t *, const void **, int);
void rd_kafka_metadata_destroy(const void *);

enum { PRODUCER = 0, CONSUMER = 1, QUEUE_FULL = -184, SEVERAL = 64, PATIENCE_MS = 120000 };

static int64_t done;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    if (message->err)
        fail("a record was refused", rd_kafka_err2str(message->err));
}

static void fetched(rd_kafka_message_t *message, void *opaque) {
    (void)opaque;
    if (message->err)
        fail("a record was not fetched", rd_kafka_err2str(message->err));
    done++;
}

static char *read_all(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file)
        fail(path, strerror(errno));
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size);
    if (!bytes || fread(bytes, 1, *size, file) != *size)
        fail(path, "it could not be read");
    fclose(file);
    return bytes;
}

/* Records are handed over many at a time, and only failures are told: what the client takes is not what is measured. */
static void produce(
    rd_kafka_t *client, rd_kafka_topic_t *topic, int partitions, int64_t count, size_t size, const char *path) {
    static rd_kafka_message_t messages[SEVERAL];
    size_t bytes;
    char *values = read_all(path, &bytes);
    size_t several = bytes / size;
    int64_t next = 0; /* the value of the next record */
    int32_t partition = 0;
    for (int64_t left = count; left > 0;) {
        int wanted = left < SEVERAL ? (int)left : SEVERAL;
        for (int i = 0; i < wanted; i++, next++) {
            messages[i].payload = values + (size_t)next % several * size;
            messages[i].len = size;
        }
        int taken = rd_kafka_produce_batch(topic, partition, 0, messages, wanted);
        if (taken < wanted) {
            if (messages[taken].err != QUEUE_FULL)
                fail("a record was not taken", rd_kafka_err2str(messages[taken].err));
            next -= wanted - taken;
            rd_kafka_poll(client, 1);
        }
        left -= taken;
        partition = (partition + 1) % partitions;
    }
    while (rd_kafka_outq_len(client) > 0)
        rd_kafka_flush(client, PATIENCE_MS);
    done = count;
}

static void fetch(rd_kafka_t *client, rd_kafka_topic_t *topic, int partitions, int64_t count) {
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    for (int32_t partition = 0; partition < partitions; partition++)
        if (rd_kafka_consume_start_queue(topic, partition, 0, queue))
            fail("fetching did not begin", rd_kafka_err2str(rd_kafka_last_error()));
    while (done < count)
        if (rd_kafka_consume_callback_queue(queue, PATIENCE_MS, fetched, NULL) <= 0)
            fail("fetch", "nothing came");
}

int main(int argc, char **argv) {
    char why[512];
    if (argc < 7)
        fail(argv[0], "produce|fetch TOPIC PARTITIONS COUNT VALUE_SIZE VALUES [PROPERTY=VALUE ...]");
    int is_producer = !strcmp(argv[1], "produce");
    int partitions = atoi(argv[3]);
    int64_t count = atoll(argv[4]);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (int i = 7; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value)
            fail(argv[i], "it is no PROPERTY=VALUE");
        *value++ = 0;
        if (rd_kafka_conf_set(conf, argv[i], value, why, sizeof why))
            fail(argv[i], why);
    }
    if (is_producer && rd_kafka_conf_set(conf, "delivery.report.only.error", "true", why, sizeof why))
        fail("delivery.report.only.error", why);
    if (is_producer)
        rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_t *client = rd_kafka_new(is_producer ? PRODUCER : CONSUMER, conf, why, sizeof why);
    if (!client)
        fail("librdkafka", why);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, argv[2], NULL);
    const void *metadata;
    if (rd_kafka_metadata(client, 0, topic, &metadata, PATIENCE_MS))
        fail(argv[2], "the broker tells nothing about it");
    rd_kafka_metadata_destroy(metadata);
    double begin = now();
    if (is_producer)
        produce(client, topic, partitions, count, (size_t)atoll(argv[5]), argv[6]);
    else
        fetch(client, topic, partitions, count);
    double taken = now() - begin;
    if (done < count)
        fail(argv[1], "not all records were acknowledged");
    printf("%.6f\n", taken);
    fflush(stdout);
    _Exit(0); /* taking the client down takes a while, and is of no interest */
}
