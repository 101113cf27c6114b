package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"

	"mirador/mir"
)

// problem is the answer of RFC 9457 to a request that failed.
type problem struct {
	Type    string   `json:"type"`
	Title   string   `json:"title"`
	Status  int      `json:"status"`
	Detail  string   `json:"detail"`
	Errors  []string `json:"errors,omitempty"`
	Request string   `json:"request"`
}

func writeProblem(x *exchange, f *Fault) {
	p := problem{Type: "about:blank", Title: http.StatusText(f.Status), Status: f.Status, Detail: f.Error(), Request: x.id}
	if len(f.Messages) > 1 {
		p.Errors = f.Messages
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)              // it is displayed in a terminal, not in a page
	if err := encoder.Encode(p); err != nil { // strings and numbers always marshal
		panic(err)
	}
	send(x, f.Status, "application/problem+json", body.Bytes())
}

// hasPlace matches a message that begins with its position in the document.
var hasPlace = regexp.MustCompile(`^line \d+, column \d+: `)

// writeErrors answers with an errors document (MIR 7). Every error begins with its position in
// the request. The position of an error that concerns no part of it is the beginning of the
// document.
func writeErrors(x *exchange, f *Fault) {
	place := x.place
	if place == (mir.Position{}) {
		place = mir.Position{Line: 1, Column: 1}
	}
	document := &mir.Errors{}
	for _, message := range f.Messages {
		if !hasPlace.MatchString(message) {
			message = mir.Fault{Pos: place, Msg: message}.String()
		}
		document.Messages = append(document.Messages, message)
	}
	var body bytes.Buffer
	if err := mir.Encode(&body, document); err != nil {
		writeProblem(x, f)
		return
	}
	send(x, f.Status, typeXML, body.Bytes())
}

// send writes a whole reply.
func send(x *exchange, status int, contentType string, body []byte) {
	h := x.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.WriteHeader(status)
	if x.r.Method != http.MethodHead {
		x.Write(body) // an error means that the caller is gone
	}
}

// sendJSON answers with a value as JSON, indented for readers in a terminal.
func sendJSON(x *exchange, status int, v any) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false) // it is displayed in a terminal, not in a page
	if err := encoder.Encode(v); err != nil {
		return err
	}
	send(x, status, "application/json", body.Bytes())
	return nil
}
