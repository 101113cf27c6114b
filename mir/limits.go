package mir

// Limits bound what a scan accepts. The scanner checks them before it builds anything, and
// before a validator sees a byte: no option of libxml2 stops a document with 80,000 attributes
// on one element, on which it spends 9 s.
type Limits struct {
	Bytes                int
	Depth                int // of nested elements
	AttributesPerElement int // including namespace declarations
	NameLength           int // of an element or attribute, in bytes
	Elements             int
}

// RequestLimits returns limits for documents from untrusted senders.
func RequestLimits() Limits {
	return Limits{Bytes: 64 << 10, Depth: 32, AttributesPerElement: 32, NameLength: 128, Elements: 8192}
}

// Longest returns limits for documents of another maximum length, with the number of elements
// scaled in proportion.
func (l Limits) Longest(bytes int) Limits {
	l.Elements = l.Elements * bytes / l.Bytes
	l.Bytes = bytes
	return l
}

// ReplyLimits returns limits for a gateway's answers, such as snapshots of large applications.
func ReplyLimits() Limits {
	return Limits{Bytes: 64 << 20, Depth: 64, AttributesPerElement: 32, NameLength: 128, Elements: 4 << 20}
}
