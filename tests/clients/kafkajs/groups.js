// Members of groups and transactional producers of KafkaJS.
'use strict'

const { AssignerProtocol } = require('kafkajs')
const { setTimeout: wait } = require('node:timers/promises')

const POLL_MS = 50
const members = new Map() // number: Member
const producers = new Map() // number: { producer, transaction }
let last = 0

// It consumes by itself, so a member keeps what came until it is polled.
class Member {
  constructor(consumer, group) {
    Object.assign(this, { consumer, group, records: [], assignment: [], positions: new Map(), isRevoked: false, failure: null })
    const revoke = () => { this.records = []; this.positions.clear(); this.assignment = []; this.isRevoked = true }
    consumer.on(consumer.events.REBALANCING, revoke)
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      revoke()
      this.assignment = Object.entries(payload.memberAssignment).flatMap(([topic, all]) => all.map(partition => [topic, partition]))
    })
    consumer.on(consumer.events.CRASH, ({ payload }) => { if (!payload.restart) this.failure = payload.error })
  }

  add(topic, partition, message) {
    if (this.assignment.some(place => place[0] === topic && place[1] === partition)) this.records.push({ topic, partition, message })
  }

  async poll() {
    for (let waited = 0; waited < POLL_MS && !this.records.length; waited += 5) await wait(5)
    if (this.failure) throw this.failure
    this.isRevoked = false
    const polled = this.records
    this.records = []
    for (const { topic, partition, message } of polled) {
      this.positions.set(JSON.stringify([topic, partition]), { topic, partition, offset: String(BigInt(message.offset) + 1n) })
    }
    return polled
  }
}

function headersOf(message) {
  return Object.entries(message.headers ?? {}).flatMap(([name, values]) => [values].flat().map(value => [name, encoded(value)]))
}

const encoded = bytes => (bytes === null || bytes === undefined ? null : Buffer.from(bytes).toString('base64'))
const decoded = text => (text === null ? null : Buffer.from(text, 'base64'))

function consumed(partition, message) {
  return {
    key: encoded(message.key), value: encoded(message.value), headers: headersOf(message), partition,
    timestamp_ms: Number(message.timestamp), offset: Number(message.offset), timestamp_type: null,
  }
}

async function join(kafka, CannotDo, { group, topics, settings }) {
  if (settings.protocol === 'consumer') throw new CannotDo('it does not have the consumer protocol')
  if (settings.assignor === 'cooperative-sticky') throw new CannotDo('it has no cooperative assignor')
  if (settings.pattern) throw new CannotDo('it looks for topics only when it subscribes')
  if (settings.instance_id) throw new CannotDo('it has no static members')
  const consumer = kafka.consumer({
    groupId: group, sessionTimeout: settings.session_ms ?? 6000, heartbeatInterval: 100, maxWaitTimeInMs: POLL_MS,
    readUncommitted: !settings.read_committed, metadataMaxAge: 300000,
  })
  const member = new Member(consumer, group)
  await consumer.connect()
  await consumer.subscribe({ topics, fromBeginning: true })
  await consumer.run({
    autoCommit: settings.auto_commit ?? false, autoCommitInterval: 100,
    eachMessage: async ({ topic, partition, message }) => member.add(topic, partition, message),
  })
  members.set(++last, member)
  return last
}

const calls = (kafka, admin, CannotDo) => ({
  'groups.join': given => join(kafka, CannotDo, given),
  async 'groups.poll'({ member }) {
    const polled = await members.get(member).poll()
    return {
      records: polled.map(({ partition, message }) => consumed(partition, message)),
      assignment: members.get(member).assignment,
    }
  },
  async 'groups.commit'({ member, wait }) {
    const { consumer, positions, isRevoked } = members.get(member)
    if (isRevoked) throw new Error('the partitions were revoked since the last poll')
    const committed = positions.size ? consumer.commitOffsets([...positions.values()]) : Promise.resolve()
    if (wait) await committed
  },
  async 'groups.leave'({ member }) {
    await members.get(member).consumer.disconnect()
    members.delete(member)
  },
  async 'groups.list_groups'() {
    return (await admin.listGroups()).groups.map(each => each.groupId)
  },
  async 'groups.describe_group'({ group }) {
    const { groups: [found] } = await admin.describeGroups([group])
    const assignments = found.members.map(({ memberAssignment }) =>
      Object.entries(AssignerProtocol.MemberAssignment.decode(memberAssignment).assignment)
        .flatMap(([topic, all]) => all.map(partition => [topic, partition])))
    return { state: found.state.toLowerCase(), assignments }
  },
  async 'groups.committed'({ group }) {
    const found = await admin.fetchOffsets({ groupId: group })
    return found.flatMap(({ topic, partitions }) => partitions.map(each => [[topic, each.partition], Number(each.offset)]))
  },
  async 'groups.set_offsets'({ group, offsets }) {
    for (const [[topic, partition], offset] of offsets) {
      await admin.setOffsets({ groupId: group, topic, partitions: [{ partition, offset: String(offset) }] })
    }
  },
  async 'groups.delete_offsets'() { throw new CannotDo('it has no call for it') },
  'groups.delete_group': ({ group }) => admin.deleteGroups([group]),

  async 'transactions.open'({ transactional_id, timeout_ms }) {
    const producer = kafka.producer({
      transactionalId: transactional_id, transactionTimeout: timeout_ms, maxInFlightRequests: 1, idempotent: true,
    })
    await producer.connect()
    await (await producer.transaction()).abort() // before the first it is no producer of this transactional id
    producers.set(++last, { producer, transaction: null })
    return last
  },
  async 'transactions.begin'({ producer }) {
    const held = producers.get(producer)
    held.transaction = await held.producer.transaction()
  },
  async 'transactions.send'({ producer, topic, records }) {
    const messages = records.map(each => ({ key: decoded(each.key), value: decoded(each.value), partition: each.partition }))
    await producers.get(producer).transaction.send({ topic, messages, acks: -1 })
  },
  async 'transactions.send_offsets'({ producer, member }) {
    const { group, positions } = members.get(member)
    const topics = new Map()
    for (const { topic, partition, offset } of positions.values()) {
      topics.set(topic, [...(topics.get(topic) ?? []), { partition, offset }])
    }
    const given = [...topics].map(([topic, partitions]) => ({ topic, partitions }))
    await producers.get(producer).transaction.sendOffsets({ consumerGroupId: group, topics: given })
  },
  async 'transactions.end'({ producer, commit }) {
    const { transaction } = producers.get(producer)
    await (commit ? transaction.commit() : transaction.abort())
  },
  async 'transactions.close'({ producer }) {
    await producers.get(producer).producer.disconnect()
    producers.delete(producer)
  },
})

module.exports = { calls, consumed, members }
