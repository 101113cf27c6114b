package mir

// Limits bound what a scan accepts. They are checked before anything is built,
// and before a validator sees a byte: no option of libxml2 stops a document
// with 80,000 attributes on one element, which costs it 9 s.
type Limits struct {
	Bytes                int
	Depth                int // of nested elements
	AttributesPerElement int // namespace declarations included
	NameLength           int // of an element or attribute, in bytes
	Elements             int
}

// RequestLimits suit what a stranger may send.
func RequestLimits() Limits {
	return Limits{Bytes: 64 << 10, Depth: 32, AttributesPerElement: 32, NameLength: 128, Elements: 8192}
}

// Longest is the limits for documents of up to so many bytes, with as many more elements
// or fewer.
func (l Limits) Longest(bytes int) Limits {
	l.Elements = l.Elements * bytes / l.Bytes
	l.Bytes = bytes
	return l
}

// ReplyLimits suit what a gateway answers: snapshots of large applications.
func ReplyLimits() Limits {
	return Limits{Bytes: 64 << 20, Depth: 64, AttributesPerElement: 32, NameLength: 128, Elements: 4 << 20}
}
