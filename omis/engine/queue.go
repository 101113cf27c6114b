package engine

import "sync"

// maxPending is the most elements of a queue of events or replies.
const maxPending = 4096

// queue runs functions one after the other, on a goroutine that exists only while there are functions.
type queue struct {
	limit int

	mu      sync.Mutex
	tasks   []func()
	running bool
}

func newQueue(limit int) *queue { return &queue{limit: limit} }

// push adds a function. It never blocks. If the queue is full it returns false, unless force is true.
func (q *queue) push(task func(), force bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.tasks) >= q.limit && !force {
		return false
	}
	q.tasks = append(q.tasks, task)
	if !q.running {
		q.running = true
		go q.work()
	}
	return true
}

func (q *queue) work() {
	for {
		q.mu.Lock()
		if len(q.tasks) == 0 {
			q.running = false
			q.tasks = nil
			q.mu.Unlock()
			return
		}
		batch := q.tasks
		q.tasks = nil
		q.mu.Unlock()
		for _, task := range batch {
			task()
		}
	}
}
