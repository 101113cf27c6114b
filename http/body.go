package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"

	"mirador/mir"
)

const (
	typeXML  = "application/xml"
	typeMIR  = "application/mir+xml"
	typeText = "text/plain; charset=utf-8"
)

// bodies are buffers for requests and replies. A buffer larger than keepBody is not reused.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const keepBody = 1 << 18

func takeBuffer() *bytes.Buffer { return bodies.Get().(*bytes.Buffer) }

func giveBuffer(b *bytes.Buffer) {
	if b.Cap() > keepBody {
		return
	}
	b.Reset()
	bodies.Put(b)
}

// bodyReader reads the bodies of requests, up to limit bytes.
type bodyReader struct {
	limit int64
	times *times
}

// readBody reads a request's body into buf.
func (r *bodyReader) readBody(x *exchange, buf *bytes.Buffer) ([]byte, error) {
	if coding := x.r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		x.Header().Set("Accept-Encoding", "identity") // RFC 9110, 15.5.16
		return nil, NewFault(http.StatusUnsupportedMediaType, fmt.Sprintf("cannot read a request in the coding %s: send it as it is", coding))
	}
	limit := r.limit
	if x.r.ContentLength > limit {
		return nil, NewFault(http.StatusRequestEntityTooLarge, tooLargeMessage(limit))
	}
	// MaxBytesReader would allocate. net/http closes a connection with an unread body anyway.
	n, err := buf.ReadFrom(io.LimitReader(x.r.Body, limit+1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		x.Header().Set("Connection", "close")
		return nil, NewFault(http.StatusRequestTimeout, fmt.Sprintf("the request did not arrive whole within %v: send it faster", r.times.body))
	}
	if err != nil {
		return nil, NewFault(http.StatusBadRequest, "cannot read the request: "+err.Error())
	}
	if n > limit {
		x.Header().Set("Connection", "close")
		return nil, NewFault(http.StatusRequestEntityTooLarge, tooLargeMessage(limit))
	}
	return buf.Bytes(), nil
}

func tooLargeMessage(limit int64) string {
	return fmt.Sprintf("the request is longer than %d bytes, the limit of this gateway; start it with --longest-request to change that", limit)
}

// documentCharset accepts the types of XML and MIR, and the type of a form if the body is XML,
// because curl -d sends every body as a form. It returns the charset in the type, "" if there
// is none. It has precedence over the one in the document (RFC 7303, 3.2).
func documentCharset(contentType string, body []byte) (string, error) {
	switch contentType {
	case typeXML, "text/xml", "":
		return "", nil
	}
	media, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	switch {
	case err != nil:
		return "", NewFault(http.StatusUnsupportedMediaType, "cannot read the Content-Type "+contentType+": "+err.Error())
	case charset != "" && !mir.KnownCharset(charset):
		return "", NewFault(http.StatusUnsupportedMediaType, fmt.Sprintf("cannot read a document in the charset %s: send it in UTF-8 or ISO-8859-1", charset))
	case media == typeXML, media == "text/xml", media == typeMIR:
		return charset, nil
	case media == "application/x-www-form-urlencoded" && startsAsXML(body):
		return charset, nil
	}
	return "", NewFault(http.StatusUnsupportedMediaType, fmt.Sprintf(
		"cannot read a document of type %s: send it as application/xml (curl -H 'Content-Type: application/xml' --data-binary @FILE)", media))
}

func startsAsXML(body []byte) bool {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("<"))
}

// prefers reports whether a Prefer header (RFC 7240) names a preference.
func prefers(r *http.Request, what string) bool { return lists(r.Header["Prefer"], what) }

// accepts reports whether the caller asked for a media type by name.
func accepts(r *http.Request, media string) bool { return lists(r.Header["Accept"], media) }

func takesGzip(r *http.Request) bool { return lists(r.Header["Accept-Encoding"], "gzip") }

// lists reports whether a header has a name among its elements, unless with the weight 0,
// which excludes it.
func lists(header []string, name string) bool {
	for _, line := range header {
		for element := range strings.SplitSeq(line, ",") {
			item, params, _ := strings.Cut(element, ";")
			if strings.EqualFold(strings.TrimSpace(item), name) {
				return strings.ReplaceAll(params, " ", "") != "q=0"
			}
		}
	}
	return false
}
