package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const pollTime = 50 * time.Millisecond

// Place is a topic and a partition.
type Place [2]any

// MemberSettings say how to be a member.
type MemberSettings struct {
	Protocol      string `json:"protocol"`
	Assignor      string `json:"assignor"`
	Pattern       string `json:"pattern"`
	InstanceID    string `json:"instance_id"`
	SessionMs     int64  `json:"session_ms"`
	AutoCommit    bool   `json:"auto_commit"`
	ReadCommitted bool   `json:"read_committed"`
}

// Member is a client in a group, with the partitions that it was told of.
type Member struct {
	client   *kgo.Client
	group    string
	lock     sync.Mutex
	assigned map[string]map[int32]bool
}

func (m *Member) options(group string, topics []string, settings MemberSettings) []kgo.Opt {
	options := []kgo.Opt{
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(pollTime),
		kgo.HeartbeatInterval(100 * time.Millisecond),
		kgo.SessionTimeout(6 * time.Second),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, places map[string][]int32) { m.change(places, true) }),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, places map[string][]int32) {
			if settings.AutoCommit { // which is left to who has a callback
				_ = client.CommitUncommittedOffsets(ctx)
			}
			m.change(places, false)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, places map[string][]int32) { m.change(places, false) }),
	}
	if settings.Pattern != "" {
		options = append(options, kgo.ConsumeRegex(), kgo.MetadataMaxAge(500*time.Millisecond), kgo.MetadataMinAge(100*time.Millisecond))
	}
	if settings.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	} else if settings.Assignor == "cooperative-sticky" {
		options = append(options, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	} else {
		options = append(options, kgo.Balancers(kgo.RangeBalancer()))
	}
	if settings.InstanceID != "" {
		options = append(options, kgo.InstanceID(settings.InstanceID))
	}
	if settings.SessionMs != 0 {
		options = append(options, kgo.SessionTimeout(time.Duration(settings.SessionMs)*time.Millisecond))
	}
	if settings.AutoCommit {
		options = append(options, kgo.AutoCommitInterval(100*time.Millisecond))
	} else {
		options = append(options, kgo.DisableAutoCommit())
	}
	if settings.ReadCommitted {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	return options
}

func (m *Member) change(places map[string][]int32, has bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for topic, partitions := range places {
		if m.assigned[topic] == nil {
			m.assigned[topic] = map[int32]bool{}
		}
		for _, partition := range partitions {
			if has {
				m.assigned[topic][partition] = true
			} else {
				delete(m.assigned[topic], partition)
			}
		}
	}
}

func (d *Driver) join(request *Request) (any, error) {
	var settings MemberSettings
	if err := json.Unmarshal(request.Settings, &settings); err != nil {
		panic(err)
	}
	if settings.Pattern != "" {
		request.Topics[0] = "^" + request.Topics[0] + "$"
	}
	member := &Member{group: request.Group, assigned: map[string]map[int32]bool{}}
	member.client = d.client(member.options(request.Group, request.Topics, settings)...)
	d.members = append(d.members, member)
	return len(d.members) - 1, nil
}

func (d *Driver) poll(request *Request) (any, error) {
	member := d.members[request.Member]
	member.client.AllowRebalance() // what was polled before is committed, or never is
	ctx, cancel := context.WithTimeout(context.Background(), pollTime)
	defer cancel()
	fetches := member.client.PollFetches(ctx)
	for _, failed := range fetches.Errors() {
		if !errors.Is(failed.Err, context.DeadlineExceeded) && !kerr.IsRetriable(failed.Err) {
			return nil, failed.Err
		}
	}
	records := []Record{}
	for _, record := range fetches.Records() {
		records = append(records, consumed(record))
	}
	member.lock.Lock()
	defer member.lock.Unlock()
	places := []Place{}
	for topic, partitions := range member.assigned {
		for partition := range partitions {
			places = append(places, Place{topic, partition})
		}
	}
	return map[string]any{"records": records, "assignment": places}, nil
}

func (d *Driver) groupCall(ctx context.Context, request *Request) (any, error) {
	switch request.Call {
	case "groups.join":
		return d.join(request)
	case "groups.poll":
		return d.poll(request)
	case "groups.commit":
		client := d.members[request.Member].client
		if request.Wait {
			return nil, client.CommitUncommittedOffsets(ctx)
		}
		client.CommitOffsets(context.Background(), client.UncommittedOffsets(), nil)
		return nil, nil
	case "groups.leave":
		d.members[request.Member].client.CloseAllowingRebalance()
		return nil, nil
	case "groups.list_groups":
		groups, err := d.admin.ListGroups(ctx)
		return groups.Groups(), err
	case "groups.describe_group":
		return d.describeGroup(ctx, request.Group)
	case "groups.committed":
		found, err := d.admin.FetchOffsets(ctx, request.Group)
		pairs := [][2]any{}
		found.Each(func(each kadm.OffsetResponse) {
			pairs = append(pairs, [2]any{Place{each.Topic, each.Partition}, each.At})
		})
		return pairs, err
	case "groups.set_offsets":
		offsets := kadm.Offsets{}
		for _, pair := range request.Offsets {
			topic, partition := placeOf(pair[0].([]any))
			offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: int64(pair[1].(float64)), LeaderEpoch: -1})
		}
		answers, err := d.admin.CommitOffsets(ctx, request.Group, offsets)
		return nil, firstOf(err, answers.Error())
	case "groups.delete_offsets":
		topic, partition := placeOf(request.Place)
		answers, err := d.admin.DeleteOffsets(ctx, request.Group, kadm.TopicsSet{topic: {partition: {}}})
		return nil, firstOf(err, answers.Error())
	case "groups.delete_group":
		answer, err := d.admin.DeleteGroup(ctx, request.Group)
		return nil, firstOf(err, answer.Err)
	}
	panic(request.Call)
}

func placeOf(pair []any) (string, int32) {
	return pair[0].(string), int32(pair[1].(float64))
}

func (d *Driver) describeGroup(ctx context.Context, group string) (any, error) {
	described, err := d.admin.DescribeGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	found := described[group]
	assignments := [][]Place{}
	for _, member := range found.Members {
		places := []Place{}
		if assigned, ok := member.Assigned.AsConsumer(); ok {
			for _, topic := range assigned.Topics {
				for _, partition := range topic.Partitions {
					places = append(places, Place{topic.Topic, partition})
				}
			}
		}
		assignments = append(assignments, places)
	}
	return map[string]any{"state": strings.ToLower(found.State), "assignments": assignments}, found.Err
}
