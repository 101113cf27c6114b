package omis

// QueueID and MessageID are what a platform calls a message queue and a message.
type (
	QueueID   uint64
	MessageID uint64
)

// Message is a message as a queue holds it, or as it has arrived.
type Message struct {
	ID     MessageID
	Sender ThreadID // zero: not known
	Size   int64
	Tag    int64 // of the monitor; 0: none
}

// ThreadID names a thread of a node.
type ThreadID struct {
	Proc ProcID
	TID  int
}

// MessagePassing is a capability of nodes whose programs pass messages by a
// library that the node knows (OMIS 8.1.4). Its queues belong to threads or to
// processes. Events: EventQueueExtended, EventTaggedMessage.
type MessagePassing interface {
	// QueueOf finds the queue of a thread, or with tid 0 that of a process.
	QueueOf(p ProcID, tid int) (q QueueID, ok bool)
	// QueueInfo lists the messages of a queue, the first to be received first.
	QueueInfo(QueueID) ([]Message, error)

	// Insert puts a message behind the pos-th one of a queue; 0: at the
	// beginning, -1: at the end.
	Insert(m MessageID, q QueueID, pos int) error
	Remove(q QueueID, m MessageID) error
	Clear(QueueID) error

	NewMessage() (MessageID, error)
	CopyMessage(from, to MessageID) error
	TagMessage(m MessageID, tag int64) error
	DestroyMessage(MessageID) error
}
