package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Transactional is a producer and its transactional id.
type Transactional struct {
	client *kgo.Client
	id     string
}

func (d *Driver) transactionCall(ctx context.Context, request *Request) (any, error) {
	if request.Call == "transactions.open" {
		client := d.client(
			kgo.TransactionalID(request.TransactionalID),
			kgo.TransactionTimeout(time.Duration(request.TimeoutMs)*time.Millisecond),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
		)
		if _, _, err := client.ProducerID(ctx); err != nil { // which fences those before it
			client.Close()
			return nil, err
		}
		d.transactional = append(d.transactional, Transactional{client, request.TransactionalID})
		return len(d.transactional) - 1, nil
	}
	client := d.transactional[request.Producer].client
	switch request.Call {
	case "transactions.begin":
		return nil, client.BeginTransaction()
	case "transactions.send":
		var records []*kgo.Record
		for _, record := range request.Records {
			records = append(records, &kgo.Record{Topic: request.Topic, Partition: record.Partition, Key: record.Key, Value: record.Value})
		}
		return nil, client.ProduceSync(ctx, records...).FirstErr()
	case "transactions.send_offsets":
		return nil, d.sendOffsets(ctx, client, request)
	case "transactions.end":
		how := kgo.TryAbort
		if request.Commit {
			how = kgo.TryCommit
		}
		return nil, client.EndTransaction(ctx, how)
	case "transactions.close":
		client.Close()
		return nil, nil
	}
	panic(request.Call)
}

// Its sessions consume and produce with one client, and send the offsets when they end. This asks for the same by itself,
// so that it is told when the offsets are sent.
func (d *Driver) sendOffsets(ctx context.Context, client *kgo.Client, request *Request) error {
	member := d.members[request.Member].client
	memberID, generation := member.GroupMetadata()
	id, epoch, err := client.ProducerID(ctx)
	if err != nil {
		return err
	}
	question := kmsg.NewPtrTxnOffsetCommitRequest()
	question.TransactionalID, question.ProducerID, question.ProducerEpoch = d.transactional[request.Producer].id, id, epoch
	question.Group, question.Generation, question.MemberID = d.members[request.Member].group, generation, memberID
	for name, partitions := range member.UncommittedOffsets() {
		topic := kmsg.NewTxnOffsetCommitRequestTopic()
		topic.Topic = name
		for number, position := range partitions {
			partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			partition.Partition, partition.Offset, partition.LeaderEpoch = number, position.Offset, position.Epoch
			topic.Partitions = append(topic.Partitions, partition)
		}
		question.Topics = append(question.Topics, topic)
	}
	answer, err := question.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, topic := range answer.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}
