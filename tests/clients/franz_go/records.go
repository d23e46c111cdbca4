package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const largestRecord = 8 << 20

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func (d *Driver) producer(given json.RawMessage) *kgo.Client {
	known := d.producers[string(given)]
	if known != nil {
		return known
	}
	var settings Settings
	if err := json.Unmarshal(given, &settings); err != nil {
		panic(err)
	}
	options := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.AllowAutoTopicCreation(),
		kgo.ProducerBatchMaxBytes(largestRecord),
		kgo.ProducerLinger(time.Millisecond),
	}
	if settings.BatchBytes != 0 {
		options = append(options, kgo.ProducerBatchMaxBytes(settings.BatchBytes))
	}
	if settings.Compression != "" {
		options = append(options, kgo.ProducerBatchCompression(codecs[settings.Compression]))
	}
	switch settings.Acks {
	case "0":
		options = append(options, kgo.RequiredAcks(kgo.NoAck()))
	case "1":
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()))
	}
	if settings.Acks == "0" || settings.Acks == "1" || settings.Idempotence != nil && !*settings.Idempotence {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client := d.client(options...)
	d.producers[string(given)] = client
	return client
}

func (d *Driver) produce(ctx context.Context, request *Request) (any, error) {
	client := d.producer(request.Settings)
	offsets, err := produceWith(ctx, client, request)
	if errors.Is(err, kerr.UnknownTopicID) { // as in consume
		client.PurgeTopicsFromProducing(request.Topic)
		offsets, err = produceWith(ctx, client, request)
	}
	return offsets, err
}

func produceWith(ctx context.Context, client *kgo.Client, request *Request) (any, error) {
	offsets := make([]int64, len(request.Records))
	failures := make([]error, len(request.Records))
	for number, record := range request.Records {
		sent := &kgo.Record{Topic: request.Topic, Partition: record.Partition, Key: record.Key, Value: record.Value}
		if record.TimestampMs != nil {
			sent.Timestamp = time.UnixMilli(*record.TimestampMs)
		}
		for _, header := range record.Headers {
			var pair kgo.RecordHeader
			if err := errors.Join(json.Unmarshal(header[0], &pair.Key), json.Unmarshal(header[1], &pair.Value)); err != nil {
				panic(err)
			}
			sent.Headers = append(sent.Headers, pair)
		}
		client.Produce(ctx, sent, func(done *kgo.Record, err error) {
			offsets[number], failures[number] = done.Offset, err
		})
	}
	if err := client.Flush(ctx); err != nil {
		return nil, err
	}
	for number := range offsets {
		if failures[number] != nil {
			return nil, failures[number]
		}
	}
	var settings Settings
	if err := json.Unmarshal(request.Settings, &settings); err != nil {
		panic(err)
	}
	if settings.Acks == "0" {
		for number := range offsets {
			offsets[number] = -1 // nobody has told
		}
	}
	return offsets, nil
}

func (d *Driver) consume(request *Request) error {
	var settings Settings
	if err := json.Unmarshal(request.Settings, &settings); err != nil {
		panic(err)
	}
	start := kgo.NewOffset()
	switch at := request.Start.(type) {
	case string:
		if start = start.AtStart(); at == "latest" {
			start = start.AtEnd()
		}
	case float64:
		start = start.At(int64(at))
	}
	options := []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{request.Topic: {request.Partition: start}}),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if settings.PartitionBytes != 0 {
		options = append(options, kgo.FetchMaxPartitionBytes(settings.PartitionBytes))
	}
	if settings.MaxWaitMs != 0 {
		options = append(options, kgo.FetchMaxWait(time.Duration(settings.MaxWaitMs)*time.Millisecond))
	}
	client := d.client(options...)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for left := request.Count; left > 0; {
		fetches := client.PollRecords(ctx, left)
		switch err := fetches.Err(); {
		case errors.Is(err, kerr.UnknownTopicID): // it leaves to the program what to do when a topic is re-created
			client.PurgeTopicsFromConsuming(request.Topic)
			client.AddConsumePartitions(map[string]map[int32]kgo.Offset{
				request.Topic: {request.Partition: kgo.NewOffset().AtStart()},
			})
		case err != nil && !kerr.IsRetriable(err):
			return err
		}
		for _, record := range fetches.Records() {
			d.write(map[string]any{"item": consumed(record)})
			left--
		}
	}
	return nil
}

func consumed(record *kgo.Record) Record {
	at := record.Timestamp.UnixMilli()
	kind := "CreateTime"
	if record.Attrs.TimestampType() == 1 {
		kind = "LogAppendTime"
	}
	headers := make([]Header, len(record.Headers))
	for number, header := range record.Headers {
		key, _ := json.Marshal(header.Key)
		value, _ := json.Marshal(header.Value)
		headers[number] = Header{key, value}
	}
	return Record{record.Key, record.Value, headers, &at, record.Partition, record.Offset, kind}
}
