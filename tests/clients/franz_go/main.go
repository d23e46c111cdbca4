// Drives franz-go for tests/clients; program.py has the protocol.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 30 * time.Second

// Header is a pair of a name and a value. Values are base64 in JSON, as is []byte.
type Header [2]json.RawMessage

// Record is a record to produce, or one that was consumed.
type Record struct {
	Key           []byte   `json:"key"`
	Value         []byte   `json:"value"`
	Headers       []Header `json:"headers"`
	TimestampMs   *int64   `json:"timestamp_ms"`
	Partition     int32    `json:"partition"`
	Offset        int64    `json:"offset"`
	TimestampType string   `json:"timestamp_type"`
}

// Settings are those of producers and of consumers.
type Settings struct {
	Compression    string `json:"compression"`
	Acks           string `json:"acks"`
	Idempotence    *bool  `json:"idempotence"`
	BatchBytes     int32  `json:"batch_bytes"`
	PartitionBytes int32  `json:"partition_bytes"`
	MaxWaitMs      int64  `json:"max_wait_ms"`
}

// Request has the arguments of all calls.
type Request struct {
	Call        string             `json:"call"`
	Topic       string             `json:"topic"`
	Partition   int32              `json:"partition"`
	Partitions  int32              `json:"partitions"`
	Total       int                `json:"total"`
	Records     []Record           `json:"records"`
	Start       any                `json:"start"`
	Count       int                `json:"count"`
	Settings    json.RawMessage    `json:"settings"`
	TimestampMs int64              `json:"timestamp_ms"`
	MayCreate   bool               `json:"may_create"`
	Config      map[string]*string `json:"config"`
	Before      int64              `json:"before"`

	// Of groups and transactions
	Group           string   `json:"group"`
	Topics          []string `json:"topics"`
	Member          int      `json:"member"`
	Wait            bool     `json:"wait"`
	Offsets         [][2]any `json:"offsets"`
	Place           []any    `json:"place"`
	TransactionalID string   `json:"transactional_id"`
	TimeoutMs       int64    `json:"timeout_ms"`
	Producer        int      `json:"producer"`
	Commit          bool     `json:"commit"`
}

// Driver has the clients, which stay connected.
type Driver struct {
	address       string
	out           *json.Encoder
	admin         *kadm.Client
	producers     map[string]*kgo.Client
	members       []*Member
	transactional []Transactional
}

func (d *Driver) client(options ...kgo.Opt) *kgo.Client {
	options = append(options, kgo.SeedBrokers(d.address), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }))
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	return client
}

func main() {
	d := &Driver{address: os.Args[1], out: json.NewEncoder(os.Stdout), producers: map[string]*kgo.Client{}}
	d.admin = kadm.NewClient(d.client())
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var request Request
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			panic(err)
		}
		result, err := d.answer(&request)
		switch {
		case err != nil:
			d.write(map[string]any{"error": map[string]any{"code": codeOf(err), "text": err.Error()}})
		default:
			d.write(map[string]any{"result": result})
		}
	}
}

func (d *Driver) write(answer any) {
	if err := d.out.Encode(answer); err != nil {
		panic(err)
	}
}

func codeOf(err error) any {
	var told *kerr.Error
	if errors.As(err, &told) {
		return told.Code
	}
	return nil
}

func (d *Driver) answer(request *Request) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if strings.HasPrefix(request.Call, "groups.") {
		return d.groupCall(ctx, request)
	}
	if strings.HasPrefix(request.Call, "transactions.") {
		return d.transactionCall(ctx, request)
	}
	switch request.Call {
	case "produce":
		return d.produce(ctx, request)
	case "consume":
		return nil, d.consume(request)
	default:
		return d.administer(ctx, request)
	}
}
