package judge;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;

/**
 * The time of one log, which moves only when it is told to, and the tasks that the log puts off. What is due at once is
 * done at once, within the call that schedules it; what is due later when the clock gets there. So there is one thread,
 * and the same questions have the same answers.
 */
final class Clock implements Time, Scheduler {
    private final List<Task> tasks = new ArrayList<>();
    private long now;
    private boolean busy;

    Clock(long now) {
        this.now = now;
    }

    /** Moves on to a time, or back to one, and does what has become due. */
    void set(long time) {
        now = time;
        work();
    }

    private void work() {
        if (busy) {
            return; // a task has scheduled another: the loop below comes to it
        }
        busy = true;
        try {
            for (Task task = due(); task != null; task = due()) {
                tasks.remove(task);
                task.action.run();
            }
        } finally {
            busy = false;
        }
    }

    private Task due() {
        return tasks.stream().filter(task -> task.time <= now).min(Comparator.comparingLong(task -> task.time)).orElse(null);
    }

    @Override
    public ScheduledFuture<?> schedule(String name, Runnable action, long delay, long period) {
        Task task = new Task(action, now + delay);
        if (period < 0) { // what is periodic is the broker's housekeeping, none of it the log's own
            tasks.add(task);
            work();
        }
        return task;
    }

    @Override
    public long milliseconds() {
        return now;
    }

    @Override
    public long nanoseconds() {
        return TimeUnit.MILLISECONDS.toNanos(now);
    }

    @Override
    public void sleep(long duration) {
        set(now + duration);
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void startup() {
    }

    @Override
    public void shutdown() {
        tasks.clear();
    }

    @Override
    public void resizeThreadPool(int size) {
    }

    private final class Task implements ScheduledFuture<Void> {
        private final Runnable action;
        private final long time;

        Task(Runnable action, long time) {
            this.action = action;
            this.time = time;
        }

        @Override
        public boolean cancel(boolean interrupt) {
            return tasks.remove(this);
        }

        @Override
        public boolean isCancelled() {
            return isDone();
        }

        @Override
        public boolean isDone() {
            return !tasks.contains(this);
        }

        @Override
        public Void get() {
            return null;
        }

        @Override
        public Void get(long timeout, TimeUnit unit) {
            return null;
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(time - now, TimeUnit.MILLISECONDS);
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.compare(getDelay(TimeUnit.MILLISECONDS), other.getDelay(TimeUnit.MILLISECONDS));
        }
    }
}
