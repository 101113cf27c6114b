package fake

import (
	"slices"
	"sync"

	"mirador/omis"
	"mirador/omis/node"
)

// post is the message-passing platform of a node: it implements node.MessagePassing.
type post struct {
	node     *Node
	mu       sync.Mutex
	last     node.MessageID
	messages map[node.MessageID]node.Message
	queues   map[node.QueueID][]node.MessageID
}

func (t *post) QueueOf(id omis.ProcID, tid int) (node.QueueID, bool) {
	p, err := t.node.byID(id)
	if err != nil {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if tid == 0 {
		if len(p.Queues) == 0 {
			return 0, false
		}
		return p.Queues[0], true
	}
	th, err := p.thread(tid)
	if err != nil || th.Queue == 0 {
		return 0, false
	}
	return th.Queue, true
}

func (t *post) QueueInfo(q node.QueueID) ([]node.Message, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []node.Message
	for _, id := range t.queues[q] {
		list = append(list, t.messages[id])
	}
	return list, nil
}

func (t *post) Insert(m node.MessageID, q node.QueueID, pos int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	inside := t.queues[q]
	if pos < 0 {
		pos = len(inside)
	}
	if pos > len(inside) {
		return omis.Errorf(omis.ParameterError, "queue %d has no position %d", q, pos)
	}
	if t.queues == nil {
		t.queues = make(map[node.QueueID][]node.MessageID)
	}
	t.queues[q] = slices.Insert(inside, pos, m)
	return nil
}

func (t *post) Remove(q node.QueueID, m node.MessageID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.queues[q], m)
	if i < 0 {
		return omis.Errorf(omis.ParameterError, "message %d is not in queue %d", m, q)
	}
	t.queues[q] = slices.Delete(t.queues[q], i, i+1)
	return nil
}

func (t *post) Clear(q node.QueueID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.queues, q)
	return nil
}

func (t *post) NewMessage() (node.MessageID, error) {
	if err := t.node.ask("NewMessage"); err != nil {
		return 0, err
	}
	return t.Message(node.Message{}), nil
}

// Message makes a message.
func (t *post) Message(m node.Message) node.MessageID {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.messages == nil {
		t.messages = make(map[node.MessageID]node.Message)
	}
	t.last++
	m.ID = t.last
	t.messages[m.ID] = m
	return m.ID
}

func (t *post) CopyMessage(from, to node.MessageID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.messages[from]
	m.ID = to
	t.messages[to] = m
	return nil
}

func (t *post) TagMessage(id node.MessageID, tag int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.messages[id]
	m.Tag = tag
	t.messages[id] = m
	return nil
}

func (t *post) DestroyMessage(id node.MessageID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.messages, id)
	return nil
}

// Send adds a message from a thread to the queue of another process, and waits for the actions
// of the event.
func (p *Process) Send(tid int, to *Process, size int64) node.MessageID {
	t := &p.node.post
	id := t.Message(node.Message{Sender: node.ThreadID{Proc: p.ID, TID: tid}, Size: size})
	q := to.Queues[0]
	if err := t.Insert(id, q, -1); err != nil {
		panic(err)
	}
	<-to.Hit(node.EventQueueExtended, node.Hit{Queue: q, Message: t.message(id)})
	return id
}

// Receive removes the first message from the queue of a thread's process, and waits for the
// actions of the event.
func (p *Process) Receive(tid int) {
	t := &p.node.post
	t.mu.Lock()
	q := p.Queues[0]
	id := t.queues[q][0]
	t.queues[q] = t.queues[q][1:]
	t.mu.Unlock()
	<-p.Hit(node.EventTaggedMessage, node.Hit{TID: tid, Message: t.message(id)})
}

func (t *post) message(id node.MessageID) node.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.messages[id]
}
