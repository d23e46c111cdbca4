/* Send requests that were made beforehand on many connections, each when the one before it is answered.
 *
 *     raw_load HOST PORT PLAN
 *
 * It connects, prints "ready", waits for a line, does what PLAN says, and prints the seconds that took. It waits for the
 * end of its input before it closes the connections. It exits with 1 if an answer has an error that was not expected.
 *
 * PLAN is a file of 32-bit numbers in the order of this machine, and of frames of requests with their sizes before them:
 *
 *     plan        connections, then each connection; the first one is the first to send
 *     connection  rounds, steps, then each step; all steps are done in turn, as often as there are rounds
 *     step        its `Numbers`, the frame, then each copy
 *
 * A step can be repeated until the answer has a certain error code. A copy takes bytes of the answer to the frame of a
 * step: a generation, or a producer's epoch. The checksum of a batch is then computed anew. A step of a member of the
 * consumer protocol is repeated until the member has reached its target: it owns what it was last told to own. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { NONE = -1, EVENTS = 1024, BATCH_CRC_AT = 17, BATCH_CHECKED_AT = 21, BATCH_SEQUENCE_AT = 53, CORRELATION_AT = 8 };

typedef struct {
    int32_t from, step, to, size;
} Copy;

typedef struct {
    int32_t size;           /* of the frame */
    int32_t error_at;       /* where the answer has its error code, from the correlation id on; NONE if it is not looked at */
    int32_t proceed;        /* the error code after which the next step follows */
    int32_t retry;          /* the error code after which this step is repeated */
    int32_t batch_at;       /* where the frame has a batch whose checksum has to be computed; NONE if it has none */
    int32_t sequences;      /* what is added to the sequence number of the batch after each round */
    int32_t epoch_at;       /* where the answer has the epoch of a member of the consumer protocol; NONE for other steps */
    int32_t wanted_epoch;   /* that the member has to reach */
    int32_t wanted_partitions; /* that the member has to own at least */
    int32_t learner;        /* the step whose frame is told the epoch, and what the member owns */
    int32_t epoch_to;       /* where that frame has the epoch */
    int32_t copies;
} Numbers;

typedef struct {
    Numbers is;
    uint8_t *frame;
    Copy *copies;
    int32_t tail_at; /* where the frame of a consumer protocol's member says what it owns */
    int32_t owned;
} Step;

typedef struct {
    int socket;
    int32_t rounds, steps, at;
    Step *all;
    int32_t sent;
    uint8_t *in;
    size_t received, room;
} Connection;

static Connection *connections;
static int32_t count, running, correlation;
static int poller;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void *reserve(void *before, size_t size) {
    void *memory = realloc(before, size ? size : 1);
    if (!memory) fail("memory");
    return memory;
}

static int32_t number_at(const uint8_t *bytes) {
    return (int32_t)((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3]);
}

static void put_number(uint8_t *bytes, int32_t number) {
    for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)((uint32_t)number >> (24 - 8 * i));
}

/* ------------------------------------------------------------------------------------------------------- checksums */

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc32c(const uint8_t *bytes, size_t size) {
    uint64_t crc = 0xffffffff, eight;
    for (; size >= 8; bytes += 8, size -= 8) {
        memcpy(&eight, bytes, 8);
        crc = __builtin_ia32_crc32di(crc, eight);
    }
    for (; size; bytes++, size--) crc = __builtin_ia32_crc32qi((uint32_t)crc, *bytes);
    return ~(uint32_t)crc;
}
#else
static uint32_t crc32c(const uint8_t *bytes, size_t size) {
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            table[i] = i;
            for (int bit = 0; bit < 8; bit++) table[i] = table[i] & 1 ? table[i] >> 1 ^ 0x82f63b78 : table[i] >> 1;
        }
    uint32_t crc = 0xffffffff;
    while (size--) crc = table[(uint8_t)(crc ^ *bytes++)] ^ crc >> 8;
    return ~crc;
}
#endif

/* --------------------------------------------------------------------------------------------------------- sending */

static void watch(Connection *each, int operation, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = each};
    if (epoll_ctl(poller, operation, each->socket, &event)) fail("epoll_ctl");
}

static void send_rest(Connection *each) {
    Step *step = &each->all[each->at];
    int was_blocked = each->sent > 0;
    while (each->sent < step->is.size) {
        ssize_t sent = send(each->socket, step->frame + each->sent, (size_t)(step->is.size - each->sent), MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            watch(each, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
            return;
        }
        if (sent < 0) fail("send");
        each->sent += (int32_t)sent;
    }
    if (was_blocked) watch(each, EPOLL_CTL_MOD, EPOLLIN);
}

static void begin_step(Connection *each) {
    Step *step = &each->all[each->at];
    put_number(step->frame, step->is.size - 4);
    put_number(step->frame + CORRELATION_AT, ++correlation);
    if (step->is.batch_at != NONE) {
        uint8_t *batch = step->frame + step->is.batch_at;
        size_t size = (size_t)number_at(batch + 8) + 12;
        put_number(batch + BATCH_CRC_AT, (int32_t)crc32c(batch + BATCH_CHECKED_AT, size - BATCH_CHECKED_AT));
    }
    each->sent = 0;
    send_rest(each);
}

/* --------------------------------------------------------------------------------------------------------- answers */

/* Return whether a member of the consumer protocol has reached its target. If it was told to own something else, its
 * next heartbeat says that it does: assignments are written alike in answers and requests. */
static int is_at_target(const Step *asked, Step *step, const uint8_t *answer, int32_t size) {
    int32_t epoch = number_at(answer + asked->is.epoch_at);
    const uint8_t *assignment = answer + asked->is.epoch_at + 8;
    put_number(step->frame + asked->is.epoch_to, epoch);
    if ((int8_t)*assignment >= 0) { /* it is not null; tagged fields follow, of the assignment and of the answer */
        int32_t length = size - (int32_t)(assignment + 1 - answer) - 2;
        step->frame = reserve(step->frame, (size_t)(step->tail_at + length + 1));
        memcpy(step->frame + step->tail_at, assignment + 1, (size_t)length);
        step->frame[step->tail_at + length] = 0;
        step->is.size = step->tail_at + length + 1;
        /* one topic at most: the number of topics and an id, then the number of partitions, both plus one */
        step->owned = assignment[1] == 1 ? 0 : assignment[1 + 1 + 16] - 1;
        return 0;
    }
    step->frame[step->tail_at] = step->frame[step->tail_at + 1] = 0; /* null: it owns what it said before */
    step->is.size = step->tail_at + 2;
    return epoch == step->is.wanted_epoch && step->owned >= step->is.wanted_partitions;
}

static void end_step(Connection *each, const uint8_t *answer, int32_t size) {
    Step *step = &each->all[each->at];
    if (step->is.error_at != NONE) {
        int16_t code = (int16_t)(answer[step->is.error_at] << 8 | answer[step->is.error_at + 1]);
        if (code != step->is.proceed && code != step->is.retry) {
            fprintf(stderr, "raw_load: error code %d in step %d of connection %ld\n", code, each->at, each - connections);
            exit(1);
        }
        if (code != step->is.proceed) {
            begin_step(each);
            return;
        }
    }
    if (step->is.epoch_at != NONE) {
        int32_t learner = step->is.learner;
        if (!is_at_target(step, &each->all[learner], answer, size) && learner == each->at) {
            begin_step(each);
            return;
        }
    }
    for (int32_t i = 0; i < step->is.copies; i++) {
        Copy *copy = &step->copies[i];
        memcpy(each->all[copy->step].frame + copy->to, answer + copy->from, (size_t)copy->size);
    }
    if (step->is.sequences) {
        uint8_t *sequence = step->frame + step->is.batch_at + BATCH_SEQUENCE_AT;
        put_number(sequence, number_at(sequence) + step->is.sequences);
    }
    if (++each->at == each->steps) {
        each->at = 0;
        if (!--each->rounds) {
            running--;
            return;
        }
    }
    begin_step(each);
}

static void receive(Connection *each) {
    if (each->room - each->received < 4096) each->in = reserve(each->in, each->room = each->room * 2 + 8192);
    ssize_t got = recv(each->socket, each->in + each->received, each->room - each->received, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0) fail("recv");
    if (!got) {
        fprintf(stderr, "raw_load: the broker closed connection %ld\n", each - connections);
        exit(1);
    }
    each->received += (size_t)got;
    if (each->received < 4) return;
    int32_t size = number_at(each->in);
    if (each->received < (size_t)size + 4) return;
    each->received = 0; /* one request at a time is under way, so that nothing follows its answer */
    end_step(each, each->in + 4, size);
}

/* ----------------------------------------------------------------------------------------------------- preparations */

static void load(FILE *plan, void *target, size_t size) {
    if (size && fread(target, size, 1, plan) != 1) fail("the plan ends too early");
}

static void load_step(FILE *plan, Step *step) {
    load(plan, &step->is, sizeof step->is);
    step->frame = reserve(NULL, (size_t)step->is.size);
    load(plan, step->frame, (size_t)step->is.size);
    step->tail_at = step->is.size - 2; /* the fields that a frame ends with: what is owned, and no tagged fields */
    step->owned = 0;
    step->copies = reserve(NULL, (size_t)step->is.copies * sizeof *step->copies);
    load(plan, step->copies, (size_t)step->is.copies * sizeof *step->copies);
}

static void load_plan(const char *path) {
    FILE *plan = fopen(path, "rb");
    if (!plan) fail(path);
    load(plan, &count, sizeof count);
    connections = reserve(NULL, (size_t)count * sizeof *connections);
    memset(connections, 0, (size_t)count * sizeof *connections);
    for (Connection *each = connections; each < connections + count; each++) {
        load(plan, &each->rounds, sizeof each->rounds);
        load(plan, &each->steps, sizeof each->steps);
        each->all = reserve(NULL, (size_t)each->steps * sizeof *each->all);
        for (int32_t i = 0; i < each->steps; i++) load_step(plan, &each->all[i]);
    }
    fclose(plan);
}

static void connect_all(const char *host, const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int yes = 1;
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail(host);
    if ((poller = epoll_create1(0)) < 0) fail("epoll_create1");
    for (Connection *each = connections; each < connections + count; each++) {
        if ((each->socket = socket(AF_INET, SOCK_STREAM, 0)) < 0) fail("socket");
        if (connect(each->socket, (struct sockaddr *)&address, sizeof address)) fail("connect");
        if (setsockopt(each->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes)) fail("setsockopt");
        if (fcntl(each->socket, F_SETFL, O_NONBLOCK)) fail("fcntl");
        watch(each, EPOLL_CTL_ADD, EPOLLIN);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    load_plan(argv[3]);
    connect_all(argv[1], argv[2]);
    printf("ready\n");
    fflush(stdout);
    if (getchar() == EOF) return 0;
    double begin = now();
    running = count;
    for (Connection *each = connections; each < connections + count; each++) begin_step(each);
    while (running) {
        static struct epoll_event events[EVENTS];
        int ready = epoll_wait(poller, events, EVENTS, -1);
        if (ready < 0 && errno != EINTR) fail("epoll_wait");
        for (int i = 0; i < ready; i++) {
            Connection *each = events[i].data.ptr;
            if (events[i].events & EPOLLOUT) send_rest(each);
            if (events[i].events & ~(uint32_t)EPOLLOUT) receive(each);
        }
    }
    printf("%.9f\n", now() - begin);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
