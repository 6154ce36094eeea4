// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clusterDomain is the domain of the names of Services.
const clusterDomain = "cluster.local"

// serveNames answers requests of DNS as a cluster's server does for a Service without an address of its own: with the addresses
// of the pods that are ready.
func serveNames(t *testing.T) {
	t.Helper()
	conn, err := net.ListenPacket("udp", net.JoinHostPort(nodeIP, "53"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		request := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(request)
			if err != nil {
				return
			}
			if answer, err := answerName(request[:n]); err != nil {
				t.Logf("a request of DNS: %v", err)
			} else {
				_, _ = conn.WriteTo(answer, from) // the client asks again
			}
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close() // it is not used any more
		<-ended
	})
}

func answerName(request []byte) ([]byte, error) {
	var p dnsmessage.Parser
	header, err := p.Start(request)
	if err != nil {
		return nil, err
	}
	question, err := p.Question()
	if err != nil {
		return nil, err
	}
	addresses, exists, err := addressesOf(question.Name.String())
	code := dnsmessage.RCodeSuccess
	switch {
	case err != nil: // the API server may be stopped
		code = dnsmessage.RCodeServerFailure
	case !exists:
		code = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired, RCode: code})
	if err := b.StartQuestions(); err != nil {
		return nil, err
	}
	if err := b.Question(question); err != nil {
		return nil, err
	}
	if err := b.StartAnswers(); err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if question.Type != dnsmessage.TypeA {
			break
		}
		of := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 1}
		if err := b.AResource(of, dnsmessage.AResource{A: a}); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}

// addressesOf returns the addresses of a Service by its name SERVICE.NAMESPACE.svc.DOMAIN.
func addressesOf(name string) (addresses [][4]byte, exists bool, err error) {
	parts := strings.SplitN(strings.TrimSuffix(name, "."), ".", 3)
	if len(parts) != 3 || parts[2] != "svc."+clusterDomain {
		return nil, false, nil
	}
	slices, err := cluster.clients.DiscoveryV1().EndpointSlices(parts[1]).List(context.Background(), meta.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + parts[0]})
	if err != nil {
		return nil, false, err
	}
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || !*e.Conditions.Ready {
				continue
			}
			for _, text := range e.Addresses {
				if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
					addresses = append(addresses, a.As4())
				}
			}
		}
	}
	return addresses, len(slices.Items) > 0, nil
}
