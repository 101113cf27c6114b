package mir

import (
	"fmt"
	"slices"
	"strings"
)

// Validator checks a scanned document against the schema of MIR (schemas/mir.xsd). It returns
// an *Error if the document is invalid; any other error means that the validator itself
// failed. It may be called concurrently. It must not keep the tree, because the decoder reuses
// its memory.
type Validator interface {
	Validate(tree *Tree) error
}

// Decoder reads documents. It is a value without state: it may be copied, and used by many
// goroutines at once.
type Decoder struct {
	Limits Limits
	// Validator may be nil for documents whose structure is trusted, such as a gateway's
	// replies. Decoding is still safe, but ignores unknown attributes.
	Validator Validator
	// Charset is the encoding that the transport names; it overrides the encoding in the
	// document (RFC 7303, 3.2). "": use the document's.
	Charset string
}

// Decode reads any document of MIR, and the gateway's explain document. All errors about the
// document have type *Error.
func (d Decoder) Decode(data []byte) (Document, error) {
	s := scanners.Get().(*scanner)
	defer s.recycle()
	tree, err := s.scan(data, d.Limits, d.Charset)
	if err != nil {
		return nil, err
	}
	read, err := readerOf(tree.Root())
	if err != nil {
		return nil, err
	}
	return d.decode(tree, read)
}

// DecodeRequest reads a request. It refuses other documents as Unsupported.
func (d Decoder) DecodeRequest(data []byte) (Document, error) {
	s := scanners.Get().(*scanner)
	defer s.recycle()
	tree, err := s.scan(data, d.Limits, d.Charset)
	if err != nil {
		return nil, err
	}
	root := tree.Root()
	read := requestReader(root)
	if read == nil {
		return nil, notARequest(root)
	}
	return d.decode(tree, read)
}

func (d Decoder) decode(tree *Tree, read reader) (Document, error) {
	if d.Validator != nil {
		if err := d.Validator.Validate(tree); err != nil {
			return nil, err
		}
	}
	var found findings
	document := read(&found, tree.Root())
	if len(found.faults) > 0 {
		return nil, NewInvalid(found.faults)
	}
	return document, nil
}

// Decode reads any document, within limits and without a validator.
func Decode(data []byte, limits Limits) (Document, error) {
	return Decoder{Limits: limits}.Decode(data)
}

// reader builds a document from a root element and records what is wrong with it.
type reader func(*findings, Element) Document

func requestReader(root Element) reader {
	if root.Space() != "" {
		return nil
	}
	switch root.Name() {
	case "sirreq":
		return readSIRRequest
	case "snapshotreq", "snapshotrequest": // the example of MIR 3 uses the long name
		return readSnapshotRequest
	case "instrreq":
		return readInstrRequest
	case "ctrlreq":
		return readControlRequest
	}
	return nil
}

func readerOf(root Element) (reader, error) {
	if root.Space() == GatewayNamespace && root.Name() == "explain" {
		return readExplain, nil
	}
	if read := requestReader(root); read != nil {
		return read, nil
	}
	if root.Space() == "" {
		switch root.Name() {
		case "snapshot":
			return readSnapshot, nil
		case "probe":
			return readProbe, nil
		case "measurement":
			return readMeasurement, nil
		case "errors":
			return readErrors, nil
		}
	}
	return nil, notARequest(root)
}

func notARequest(root Element) *Error {
	const expected = "sirreq, snapshotreq, instrreq or ctrlreq was expected"
	if root.Space() != "" {
		return refuse(Unsupported, root.Pos(), "<%s> is in the namespace %s, MIR's requests are in none or in %s; %s",
			quoteless(root.Tag()), Quote(root.Space()), Namespace, expected)
	}
	switch root.Name() {
	case "sir", "snapshot", "probe", "measurement", "errors":
		return refuse(Unsupported, root.Pos(), "<%s> is an answer, not a request; %s", root.Name(), expected)
	}
	return refuse(Unsupported, root.Pos(), "<%s> is not a request of MIR; %s", quoteless(root.Name()), expected)
}

// findings collects the faults that are found while a document is read.
type findings struct{ faults []Fault }

func (f *findings) add(pos Position, format string, args ...any) {
	f.faults = append(f.faults, Fault{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// unexpected records an element of MIR that is not allowed here. Elements of other namespaces
// are allowed anywhere, and ignored.
func (f *findings) unexpected(child Element) {
	if child.Space() != "" {
		return
	}
	parent, _ := child.Parent()
	f.add(child.Pos(), "<%s> is not allowed in <%s>", quoteless(child.Name()), parent.Name())
}

func oneOf[T ~string](value string, choices ...T) (T, bool) {
	i := slices.Index(choices, T(value))
	if i < 0 {
		return "", false
	}
	return choices[i], true
}

func listed[T ~string](choices []T) string {
	names := make([]string, len(choices))
	for i, choice := range choices {
		names[i] = string(choice)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
