package engine

import (
	"mirador/omis"
	"mirador/omis/node"
)

// Messages and message queues (OMIS 8.1.4). The platform has them; the engine gives them tokens.

// queueObject is a message queue of a process, or of one of its threads.
type queueObject struct {
	ident
	proc *process
	tid  int // 0: of the process
	id   node.QueueID
}

// messageObject is a message of a node's platform.
type messageObject struct {
	ident
	node *machine
	id   node.MessageID
}

type queueKey struct {
	node *machine
	id   node.QueueID
}

type messageKey struct {
	node *machine
	id   node.MessageID
}

// queue returns the object of a queue, and makes it if necessary.
func (r *registry) queue(p *process, tid int, id node.QueueID) *queueObject {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := queueKey{p.node(), id}
	if q := r.queues[key]; q != nil {
		return q
	}
	q := &queueObject{ident: r.newIdent(omis.ClassQueue), proc: p, tid: tid, id: id}
	if !p.ended {
		r.queues[key], r.objects[q.token] = q, q
	}
	return q
}

func (r *registry) message(n *machine, id node.MessageID) *messageObject {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := messageKey{n, id}
	if m := r.messages[key]; m != nil {
		return m
	}
	m := &messageObject{ident: r.newIdent(omis.ClassMessage), node: n, id: id}
	r.messages[key], r.objects[m.token] = m, m
	return m
}

func (r *registry) dropMessage(m *messageObject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.messages, messageKey{m.node, m.id})
	delete(r.objects, m.token)
}

// dropQueuesLocked makes the queues of a process unknown. The caller holds mu.
func (r *registry) dropQueuesLocked(p *process) {
	for key, q := range r.queues {
		if q.proc == p {
			delete(r.queues, key)
			delete(r.objects, q.token)
		}
	}
}

// queueOf returns the token of a thread's queue or, with tid 0, of a process's.
func (e *Engine) queueOf(p *process, tid int) omis.Token {
	at := p.at()
	mp, ok := declared(at.node.Can.MessagePassing)
	if !ok {
		return omis.Undefined
	}
	id, ok := mp.QueueOf(at.id, tid)
	if !ok {
		return omis.Undefined
	}
	return e.reg.queue(p, tid, id).token
}

// queuesIn expands processes to their queues and those of their threads.
func (c *conversions) queuesIn(procs []object) (list []object, failed omis.ServiceResult) {
	add := func(p *process, tid int) {
		if q := c.tool.e.reg.lookup(c.tool.e.queueOf(p, tid)); q != nil {
			list = append(list, q)
		}
	}
	for _, o := range procs {
		add(o.(*process), 0)
	}
	threads, failed := c.threadsIn(procs)
	for _, o := range threads {
		add(o.(*thread).proc, o.(*thread).tid)
	}
	return unique(list), failed
}

// queueOfThread returns the queue that a thread receives from: its own, or its process's.
func (c *conversions) queueOfThread(t *thread) []object {
	for _, tid := range []int{t.tid, 0} {
		if q := c.tool.e.reg.lookup(c.tool.e.queueOf(t.proc, tid)); q != nil {
			return []object{q}
		}
	}
	return nil
}

// messagesIn expands queues to their messages.
func (c *conversions) messagesIn(queues []object, failed omis.ServiceResult) ([]object, omis.ServiceResult) {
	var list []object
	for _, o := range queues {
		q := o.(*queueObject)
		n := q.proc.node()
		inside, err := n.Can.MessagePassing.QueueInfo(q.id)
		if err != nil {
			failed = append(failed, failure(err, q.token))
			continue
		}
		for i := range inside {
			list = append(list, c.tool.e.reg.message(n, inside[i].ID))
		}
	}
	return list, failed
}

// messageValues returns msg, sender, size and monitor_tag, as in events.
func (e *Engine) messageValues(n *machine, m *node.Message) []omis.Value {
	return []omis.Value{
		omis.TokenValue(e.reg.message(n, m.ID).token), omis.TokenValue(e.sender(n, m.Sender)),
		omis.Int(m.Size), omis.Int(m.Tag),
	}
}

func (e *Engine) sender(n *machine, id node.ThreadID) omis.Token {
	if id.TID == 0 {
		return omis.Undefined
	}
	return e.reg.thread(e.reg.process(place{n, id.Proc}), id.TID).token
}

// partner finds a second object of a service, on the node of the first.
func partner[T object](x *execution, c *call, i int, n *machine) (T, error) {
	v := c.args[i]
	if v.Kind == omis.KindList && len(v.List) == 1 {
		v = v.List[0]
	}
	found, err := x.tool.find(v.Token())
	o, ok := found.(T)
	switch {
	case err != nil:
		return o, err
	case !ok:
		return o, omis.Errorf(omis.TypeMismatch, "%s cannot be %s of %s", found.Token(), c.service.Params[i].Name, c.service.Name)
	case nodeOf(o) != n:
		return o, omis.Errorf(omis.ParameterError, "%s and %s are on different nodes", c.object.Token(), o.Token())
	}
	return o, nil
}

// messaging makes an action of a function that needs the platform of the object's node.
func messaging(do func(*execution, *call, node.MessagePassing) ([]omis.Value, error)) func(*execution, *call) ([]omis.Value, error) {
	return func(x *execution, c *call) ([]omis.Value, error) {
		n := nodeOf(c.object)
		mp, err := capability(n, n.Can.MessagePassing, c.service)
		if err != nil {
			return nil, err
		}
		return do(x, c, mp)
	}
}

func messageInsert(x *execution, c *call, mp node.MessagePassing) ([]omis.Value, error) {
	m := c.object.(*messageObject)
	q, err := partner[*queueObject](x, c, 1, m.node)
	if err != nil {
		return nil, err
	}
	pos, err := c.small(2)
	if err == nil && pos < -1 {
		err = omis.Errorf(omis.ParameterError, "%d is no position in a queue", pos)
	}
	if err != nil {
		return nil, err
	}
	return nil, mp.Insert(m.id, q.id, pos)
}

func messageRemove(x *execution, c *call, mp node.MessagePassing) ([]omis.Value, error) {
	q := c.object.(*queueObject)
	m, err := partner[*messageObject](x, c, 1, q.proc.node())
	if err != nil {
		return nil, err
	}
	return nil, mp.Remove(q.id, m.id)
}

func messageClear(_ *execution, c *call, mp node.MessagePassing) ([]omis.Value, error) {
	return nil, mp.Clear(c.object.(*queueObject).id)
}

func messageTag(_ *execution, c *call, mp node.MessagePassing) ([]omis.Value, error) {
	m := c.object.(*messageObject)
	tag, err := c.int(1)
	if err == nil && tag == 0 {
		err = omis.Errorf(omis.ParameterError, "tag 0 means that a message has none")
	}
	if err != nil {
		return nil, err
	}
	return nil, mp.TagMessage(m.id, tag)
}

// messageCreate makes the message on the first attached node that can do it: the service has no parameter
// for the node.
func messageCreate(x *execution, c *call) ([]omis.Value, error) {
	err := error(omis.Errorf(omis.UnsupportedService, "%s is not supported on the attached nodes: %s", c.service.Name, c.service.Needs.Missing()))
	for _, o := range x.tool.own(omis.ClassNode) {
		n := o.(*machine)
		mp, missing := capability(n, n.Can.MessagePassing, c.service)
		if missing != nil {
			continue
		}
		var id node.MessageID
		if id, err = mp.NewMessage(); err == nil {
			return []omis.Value{omis.TokenValue(x.e.reg.message(n, id).token)}, nil
		}
	}
	return nil, err
}

func messageCopy(x *execution, c *call, mp node.MessagePassing) ([]omis.Value, error) {
	src := c.object.(*messageObject)
	dst, err := partner[*messageObject](x, c, 1, src.node)
	if err != nil {
		return nil, err
	}
	return nil, mp.CopyMessage(src.id, dst.id)
}

func messageDestroy(x *execution, c *call, mp node.MessagePassing) ([]omis.Value, error) {
	m := c.object.(*messageObject)
	if err := mp.DestroyMessage(m.id); err != nil {
		return nil, err
	}
	x.e.reg.dropMessage(m)
	return nil, nil
}

// messageFields are the components of Message_info.
const messageFields = 4

func messageQueueGetInfo(x *execution, c *call, mp node.MessagePassing) ([]omis.Value, error) {
	q := c.object.(*queueObject)
	flags, err := c.int(1)
	if err == nil && (flags < 0 || flags >= 1<<messageFields) {
		err = omis.Errorf(omis.ParameterError, "message_queue_get_info has no components for flags %#x", uint64(flags&^(1<<messageFields-1)))
	}
	if err != nil {
		return nil, err
	}
	n := q.proc.node()
	inside, err := mp.QueueInfo(q.id)
	if err != nil {
		return nil, err
	}
	var list []omis.Value
	for i := range inside {
		for bit, v := range x.e.messageValues(n, &inside[i]) {
			if flags&(1<<bit) != 0 {
				list = append(list, v)
			}
		}
	}
	return []omis.Value{omis.Int(int64(len(inside))), omis.List(list...)}, nil
}

// peer returns the token of a node that a program adds or removes. It is undefined if this monitor does not
// have the node.
func (e *Engine) peer(name string) omis.Token {
	if n := e.nodeNamed(name); n != nil {
		return n.token
	}
	return omis.Undefined
}
