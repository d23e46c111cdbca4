package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (d *Driver) administer(ctx context.Context, request *Request) (any, error) {
	topic := request.Topic
	switch request.Call {
	case "offset_for_time":
		found, err := d.admin.ListOffsetsAfterMilli(ctx, request.TimestampMs, topic)
		if err != nil {
			return nil, err
		}
		offset, _ := found.Lookup(topic, request.Partition)
		if offset.Timestamp < 0 { // it gives the end where there is none
			return nil, offset.Err
		}
		return offset.Offset, offset.Err
	case "offsets":
		earliest, err := d.admin.ListStartOffsets(ctx, topic)
		if err != nil {
			return nil, err
		}
		end, err := d.admin.ListEndOffsets(ctx, topic)
		if err != nil {
			return nil, err
		}
		first, _ := earliest.Lookup(topic, request.Partition)
		last, _ := end.Lookup(topic, request.Partition)
		return []int64{first.Offset, last.Offset}, nil
	case "partitions":
		return d.partitions(ctx, request)
	case "create_topic":
		answer, err := d.admin.CreateTopic(ctx, request.Partitions, 1, request.Config, topic)
		return nil, firstOf(err, answer.Err)
	case "list_topics":
		topics, err := d.admin.ListTopics(ctx)
		return topics.Names(), err
	case "add_partitions":
		answers, err := d.admin.UpdatePartitions(ctx, request.Total, topic)
		return nil, firstOf(err, answers[topic].Err)
	case "delete_topic":
		answers, err := d.admin.DeleteTopics(ctx, topic)
		return nil, firstOf(err, answers[topic].Err)
	case "describe_config":
		return d.describeConfig(ctx, topic)
	case "replace_config":
		answers, err := d.admin.AlterTopicConfigsState(ctx, changes(request.Config), topic)
		return nil, firstOf(err, alterError(answers))
	case "change_config":
		answers, err := d.admin.AlterTopicConfigs(ctx, changes(request.Config), topic)
		return nil, firstOf(err, alterError(answers))
	case "delete_records":
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{Topic: topic, Partition: request.Partition, At: request.Before})
		answers, err := d.admin.DeleteRecords(ctx, offsets)
		answer, _ := answers.Lookup(topic, request.Partition)
		return answer.LowWatermark, firstOf(err, answer.Err)
	}
	panic(request.Call)
}

// Its admin client never has topics created, so this asks itself.
func (d *Driver) partitions(ctx context.Context, request *Request) (any, error) {
	question := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = &request.Topic
	question.Topics = append(question.Topics, asked)
	question.AllowAutoTopicCreation = request.MayCreate
	client := d.client()
	defer client.Close()
	answer, err := question.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	found := answer.Topics[0]
	if err := kerr.ErrorForCode(found.ErrorCode); err != nil && err != kerr.UnknownTopicOrPartition {
		return nil, err
	}
	return len(found.Partitions), nil
}

func (d *Driver) describeConfig(ctx context.Context, topic string) (any, error) {
	answers, err := d.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	answer, err := answers.On(topic, nil)
	settings := map[string]string{}
	for _, config := range answer.Configs {
		settings[config.Key] = config.MaybeValue()
	}
	return settings, firstOf(err, answer.Err)
}

func changes(config map[string]*string) []kadm.AlterConfig {
	var all []kadm.AlterConfig
	for name, value := range config {
		operation := kadm.SetConfig
		if value == nil {
			operation = kadm.DeleteConfig
		}
		all = append(all, kadm.AlterConfig{Op: operation, Name: name, Value: value})
	}
	return all
}

func alterError(answers kadm.AlterConfigsResponses) error {
	for _, answer := range answers {
		if answer.Err != nil {
			return answer.Err
		}
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
