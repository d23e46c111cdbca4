// Drives KafkaJS for tests/clients; program.py has the protocol.
'use strict'

const { ConfigResourceTypes, CompressionCodecs, CompressionTypes, Kafka, logLevel } = require('kafkajs')
const readline = require('node:readline')
const groups = require('./groups.js')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')

const PATIENCE_MS = 30000
const COMPRESSIONS = { none: 'None', gzip: 'GZIP', snappy: 'Snappy' }
const UNKNOWN_TOPIC = 3
const kafka = new Kafka({
  brokers: [process.argv[2]],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 60 },
})
// For what is refused, nothing is gained by asking again.
const admin = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING, retry: { retries: 3 } }).admin()
const producers = new Map()
let alone = 0 // how many consumers there were

class CannotDo extends Error {}

function cannot(reason) {
  return async () => { throw new CannotDo(reason) }
}

const decoded = text => (text === null ? null : Buffer.from(text, 'base64'))

async function producerFor(settings) {
  const name = JSON.stringify(settings)
  if (!producers.has(name)) {
    const idempotent = settings.idempotence === true
    const producer = kafka.producer({ idempotent, ...(idempotent ? { maxInFlightRequests: 1 } : {}) })
    await producer.connect()
    producers.set(name, producer)
  }
  return producers.get(name)
}

function message(record) {
  if (record.headers.some(([, value]) => value === null)) throw new CannotDo('it has no headers whose value is null')
  const headers = {}
  for (const [name, value] of record.headers) (headers[name] ??= []).push(decoded(value))
  const names = record.headers.map(([name]) => name)
  if (Object.keys(headers).length < names.length && Object.keys(headers).flatMap(n => headers[n].map(() => n)).join() !== names.join()) {
    throw new CannotDo('its headers are a map, which has repeated ones next to each other')
  }
  const timestamp = record.timestamp_ms === null ? undefined : String(record.timestamp_ms)
  return { key: decoded(record.key), value: decoded(record.value), partition: record.partition, headers, timestamp }
}

const sizeOf = record => (record.value === null ? 0 : record.value.length)

// Its `send` makes one batch for each partition.
function* batches(records, limit) {
  let batch = []
  let size = 0
  for (const record of records) {
    if (batch.length && size + sizeOf(record) > limit) {
      yield batch
      ;[batch, size] = [[], 0]
    }
    batch.push(record)
    size += sizeOf(record)
  }
  yield batch
}

const calls = {
  async produce({ topic, records, settings }) {
    const codec = settings.compression ?? 'none'
    if (!(codec in COMPRESSIONS)) throw new CannotDo('it leaves the codec to a package that has to be compiled')
    const producer = await producerFor(settings)
    const compression = CompressionTypes[COMPRESSIONS[codec]]
    const acks = { 0: 0, 1: 1, all: -1 }[settings.acks ?? 'all']
    const next = new Map() // partition: the offsets that were given out
    for (const batch of batches(records.map(message), settings.batch_bytes ?? Infinity)) {
      for (const each of (await producer.send({ topic, messages: batch, acks, compression, timeout: PATIENCE_MS })) ?? []) {
        let offset = Number(each.baseOffset)
        const given = next.get(each.partition) ?? []
        for (const one of batch) if (one.partition === each.partition) given.push(offset++)
        next.set(each.partition, given)
      }
    }
    return records.map(record => next.get(record.partition)?.shift() ?? -1)
  },
  // It consumes only in groups, so this is the only member of one, which goes where it is told to begin.
  async consume({ topic, partition, start, count, settings }) {
    const [earliest, end] = await calls.offsets({ topic, partition })
    const offset = { earliest, latest: end }[start] ?? start
    const consumer = kafka.consumer({
      groupId: `alone-${process.pid}-${++alone}`, sessionTimeout: 30000, maxWaitTimeInMs: settings.max_wait_ms ?? 50,
      maxBytesPerPartition: settings.partition_bytes ?? 1 << 20, allowAutoTopicCreation: false,
    })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await new Promise((resolve, reject) => {
      setTimeout(() => reject(new Error(`no ${count} records within ${PATIENCE_MS} ms`)), PATIENCE_MS).unref()
      consumer.on(consumer.events.CRASH, ({ payload }) => { if (!payload.restart) reject(payload.error) })
      const eachMessage = async given => {
        if (given.partition !== partition || count-- <= 0) return
        write({ item: groups.consumed(partition, given.message) })
        if (count === 0) resolve()
      }
      consumer.run({ autoCommit: false, eachMessage }).catch(reject)
      consumer.seek({ topic, partition, offset: String(offset) })
    }).finally(() => { consumer.disconnect().catch(() => {}) }) // not awaited: its last fetch may wait for long
  },
  async offset_for_time({ topic, partition, timestamp_ms }) {
    const found = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp_ms)
    const offset = Number(found.find(each => each.partition === partition).offset)
    const [, end] = await calls.offsets({ topic, partition })
    return offset === end ? null : offset // it gives the end where there is none
  },
  async offsets({ topic, partition }) {
    const found = (await admin.fetchTopicOffsets(topic)).find(each => each.partition === partition)
    return [Number(found.low), Number(found.high)]
  },
  async partitions({ topic, may_create }) {
    try {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
      return topics[0].partitions.length
    } catch (error) {
      if (error.code === UNKNOWN_TOPIC && may_create) throw new CannotDo('its admin client never has topics created')
      if (error.code === UNKNOWN_TOPIC) return 0
      throw error
    }
  },
  async create_topic({ topic, partitions, config }) {
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
    const isNew = await admin.createTopics({ topics: [{ topic, numPartitions: partitions, configEntries }], waitForLeaders: false })
    if (!isNew) throw Object.assign(new Error('createTopics returned false'), { code: 36 })
  },
  list_topics: () => admin.listTopics(),
  add_partitions: ({ topic, total }) => admin.createPartitions({ topicPartitions: [{ topic, count: total }] }),
  delete_topic: ({ topic }) => admin.deleteTopics({ topics: [topic] }),
  async describe_config({ topic }) {
    const { resources } = await admin.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }] })
    return Object.fromEntries(resources[0].configEntries.map(entry => [entry.configName, entry.configValue]))
  },
  async replace_config({ topic, config }) {
    const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
    await admin.alterConfigs({ validateOnly: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }] })
  },
  change_config: cannot('it has no incremental changes of settings'),
  async delete_records({ topic, partition, before }) {
    await calls.offsets({ topic, partition }) // else it does not know the leader
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] })
    return (await calls.offsets({ topic, partition }))[0]
  },
}

Object.assign(calls, groups.calls(kafka, admin, CannotDo))

const write = answer => process.stdout.write(JSON.stringify(answer) + '\n')

// The error of the broker is somewhere among the causes.
function codeOf(error) {
  for (let each = error; each; each = each.cause ?? each.originalError ?? each.errors?.[0]) {
    if (Number.isInteger(each.code) && each.code >= 0) return each.code
    if (each.groups?.[0]?.errorCode) return each.groups[0].errorCode
  }
  return null
}

async function main() {
  await admin.connect()
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { call, ...given } = JSON.parse(line)
    let answer
    try {
      answer = { result: (await calls[call](given)) ?? null }
    } catch (error) {
      answer = error instanceof CannotDo ? { cannot: error.message } : { error: { code: codeOf(error), text: String(error) } }
    }
    write(answer)
  }
  const consumers = [...groups.members.values()].map(each => each.consumer)
  await Promise.all([admin, ...producers.values(), ...consumers].map(each => each.disconnect()))
}

main()
