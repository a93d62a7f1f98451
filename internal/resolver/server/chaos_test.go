package server

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// TestChaos compares the question and the reading of answers with dnsmessage.Message.
func TestChaos(t *testing.T) {
	name := dnsmessage.MustNewName("hits.bind.")
	question := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 700, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypeTXT, Class: dnsmessage.ClassCHAOS}},
	}
	want, err := question.Pack()
	if err != nil {
		t.Fatal(err)
	}
	got, err := chaosQuestion(700, "hits.bind.")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("chaosQuestion: %x, %v; want %x", got, err, want)
	}

	of := dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassCHAOS}
	question.Response = true
	question.Answers = []dnsmessage.Resource{
		{Header: of, Body: &dnsmessage.TXTResource{TXT: []string{"1", "2"}}},
		{Header: of, Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}}},
		{Header: of, Body: &dnsmessage.TXTResource{TXT: []string{"3"}}},
	}
	question.Additionals = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(".")},
		Body: &dnsmessage.OPTResource{}}}
	answer, err := question.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if all, ok := chaosAnswer(answer, 700); !ok || !slices.Equal(all, []string{"1", "2", "3"}) {
		t.Errorf("chaosAnswer: %q, %v", all, ok)
	}
	if _, ok := chaosAnswer(answer, 701); ok {
		t.Error("chaosAnswer took the answer to another question")
	}
	for n := range answer {
		if all, ok := chaosAnswer(answer[:n], 700); ok {
			t.Errorf("chaosAnswer took the first %d of %d octets: %q", n, len(answer), all)
		}
	}
}
