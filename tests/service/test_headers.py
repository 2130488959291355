"""The headers of every answer, good or bad; who may read answers from other pages; the rate."""

import base64
import hashlib
import http.client
import logging
import re
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from service.bad_bodies import MARK
from service.conftest import running
from sfumato.errors import StorageError
from sfumato.server.http.app import PAGES, page_bytes, page_policy
from sfumato.server.http.limits import HEADERS, POLICY, Limits, Rates
from sfumato.server.surveys.lifecycle import Surveys

COLUMNS = [{"name": "smoker", "kind": "boolean"}]
ELSEWHERE = {"origin": "https://elsewhere.example"}


def ask(address, method, path, *, headers=None, body=None, source=None):
    """Status, headers as a list, body."""
    source = None if source is None else (source, 0)
    made = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30, source_address=source)
    with closing(made) as line:
        line.request(method, path, body=body, headers=headers or {})
        reply = line.getresponse()
        return reply.status, reply.getheaders(), reply.read()


def assert_guarded(found, policy=None):
    """The headers that every answer has, once each."""
    names = [name.lower() for name, _ in found]
    values = {name.lower(): value for name, value in found}
    assert len(set(names)) == len(names)
    for name, value in HEADERS:
        assert values[name.decode()] == value.decode()
    assert values["content-security-policy"] == (policy or POLICY.decode())
    assert values["cache-control"] in ("no-store", "no-cache")
    assert "set-cookie" not in values
    assert "location" not in values


@pytest.fixture
def broken(service):
    """A service with a route that fails, and one whose database is away."""
    app = service.service.app

    @app.get("/fails")
    async def fails():
        raise ValueError(MARK)

    @app.get("/away")
    async def away():
        raise StorageError(MARK)

    return service


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def test_every_kind_of_answer_has_the_headers_and_no_quotation(broken):
    made = broken.create(COLUMNS)
    here, large = f"/v1/surveys/{made.task}", b" " * 10_000
    wrong_kind = {**bearer(made.admin), "content-type": f"text/{MARK}"}
    cases = [
        ("GET", "/healthz", {}, None, 200),
        ("HEAD", "/healthz", {}, None, 200),
        ("GET", "/metrics", {}, None, 200),
        ("GET", "/openapi.json", {}, None, 200),
        ("GET", here, {}, None, 200),
        ("OPTIONS", here, ELSEWHERE, None, 204),
        ("GET", f"{here}/status", {}, None, 401),
        ("GET", f"{here}/status", bearer("0" * 48), None, 401),
        ("POST", f"{here}/open", bearer(made.reader), None, 403),
        ("GET", f"/{MARK}", {}, None, 404),
        ("GET", f"/answer/?{MARK}", {}, None, 404),
        ("GET", f"/v1/surveys/{MARK}", {}, None, 404),
        ("GET", "/%00%ff%0d%0aset-cookie:x=1", {}, None, 404),
        ("PUT", "/healthz", {}, None, 405),
        ("DELETE", here, {}, None, 405),
        ("OPTIONS", f"{here}/open", ELSEWHERE, None, 405),
        ("TRACE", "/owner", {}, None, 405),
        ("GET", f"{here}/estimates", bearer(made.reader), None, 409),
        ("POST", f"{here}/answers", {}, large, 413),
        ("POST", f"{here}/open", wrong_kind, b"{}", 415),
        ("POST", f"{here}/answers", {}, MARK.encode(), 422),
        ("GET", f"{here}/rounds/{MARK}", {}, None, 422),
        ("GET", "/fails", {}, None, 500),
        ("GET", "/away", {}, None, 503),
    ]
    for method, path, headers, body, expected in cases:
        status, found, said = ask(broken.address, method, path, headers=headers, body=body)
        assert status == expected, (method, path)
        assert_guarded(found)
        assert MARK not in f"{found}{said}"
        if status == 405:
            assert "GET" in dict(found)["allow"] or "POST" in dict(found)["allow"]
        if status == 503:
            assert dict(found)["retry-after"].isdigit()


def test_an_error_of_our_own_is_logged_by_its_place_and_not_by_its_words(broken, caplog):
    with caplog.at_level(logging.DEBUG):
        assert ask(broken.address, "GET", "/fails")[0] == 500
        assert ask(broken.address, "GET", "/away")[0] == 503
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(told) == 1
    assert re.fullmatch(r"an error of our own: ValueError in test_headers.py, line [0-9]+", told[0])
    assert MARK not in caplog.text


def test_a_database_that_is_away_is_no_error_of_ours_on_any_way_in(service, monkeypatch):
    made = service.create(COLUMNS)
    here = f"/v1/surveys/{made.task}"

    def away(*_about):
        raise StorageError("away")

    for name in ("find", "access", "round"):
        monkeypatch.setattr(Surveys, name, away)
    upload = (
        b'{"sfumato":1,"kind":"upload","report":"%s","token":null,"answer":'
        b'{"sfumato":1,"question":"%s","answer":[0,0]}}' % (b"ab" * 16, b"cd" * 16)
    )
    for method, path, body in (
        ("GET", here, None),
        ("GET", f"{here}/rounds/1", None),
        ("POST", f"{here}/answers", upload),
        ("GET", f"{here}/status", None),
        ("POST", "/v1/surveys", b"{}"),
    ):
        status, found, _ = ask(service.address, method, path, headers=bearer("0" * 48), body=body)
        assert (status, path) == (503, path)
        assert dict(found)["retry-after"] == "2"


@pytest.mark.parametrize("path", PAGES)
def test_pages_run_their_own_script_and_style_only(service, path):
    name = PAGES[path]
    for method in ("GET", "HEAD"):
        status, found, body = ask(service.address, method, path)
        assert status == 200
        assert_guarded(found, page_policy(name))
        assert body == (page_bytes(name) if method == "GET" else b"")
    rules = dict(rule.strip().split(" ", 1) for rule in page_policy(name).split(";"))
    text = page_bytes(name).decode()
    assert rules["default-src"] == "'none'"
    assert rules["frame-ancestors"] == "'none'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    for rule, tag in (("script-src", "script"), ("style-src", "style")):
        inline = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", text, re.DOTALL)[:1]
        digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()) for each in inline]
        assert rules[rule] == " ".join(f"'sha256-{each.decode()}'" for each in digests)
    assert "unsafe" not in page_policy(name)
    assert "*" not in page_policy(name).replace(":*", "")
    own = {"'self'"} if path == "/owner" else {"'self'", "https:"}
    others = {each for each in rules["connect-src"].split() if not each.startswith("http://")}
    assert others == own


def test_other_pages_may_read_what_is_for_people_and_nothing_else(service):
    made = service.create(COLUMNS)
    made.act("open")
    here = f"/v1/surveys/{made.task}"
    for method, path, shared in (
        ("GET", here, True),
        ("GET", f"{here}/rounds/1", True),
        ("POST", f"{here}/answers", True),
        ("POST", f"{here}/batches", True),
        ("OPTIONS", f"{here}/answers", True),
        ("GET", f"{here}/status", False),
        ("POST", f"{here}/invitations", False),
        ("OPTIONS", f"{here}/invitations", False),
        ("OPTIONS", "/v1/surveys", False),
        ("POST", "/v1/surveys", False),
        ("GET", "/v1/access", False),
        ("GET", "/metrics", False),
        ("GET", "/owner", False),
        ("GET", "/v1/nothing", False),
    ):
        headers = {**ELSEWHERE, **bearer(made.admin), "access-control-request-method": "POST"}
        _, found, _ = ask(service.address, method, path, headers=headers)
        told = dict(found)
        assert told.get("access-control-allow-origin") == ("*" if shared else None), path
        assert "access-control-allow-credentials" not in told
        assert "authorization" not in told.get("access-control-allow-headers", "").lower()
        policy = told["cross-origin-resource-policy"]
        assert policy == ("cross-origin" if shared else "same-origin")


def test_the_rate_is_that_of_the_connection_whatever_a_header_says(tmp_path):
    """A steady rate of one in an hour: what was let in is what the burst allows."""
    limits = Limits(per_second=1 / 3600, burst=3)
    with running(str(tmp_path / "s.db"), limits=limits) as found:
        for number in range(5):
            claimed = f"10.0.0.{number}"
            headers = {"x-forwarded-for": claimed, "forwarded": f"for={claimed}"}
            headers |= {"x-real-ip": claimed}
            status, told, _ = ask(found.address, "GET", "/healthz", headers=headers)
            assert status == (200 if number < 3 else 429)
            assert_guarded(told)
        assert int(dict(told)["retry-after"]) > 0
        another = ask(found.address, "GET", "/healthz", source="127.0.0.9")
        assert another[0] == 200  # the companion: another address has a rate of its own


def test_a_network_of_ipv6_counts_as_one_address():
    rates = Rates(Limits(per_second=1 / 3600, burst=2))
    assert [rates.admits((f"2001:db8::{n:x}", 1)) for n in range(4)] == [True, True, False, False]
    assert rates.admits(("2001:db8:0:1::1", 1))
    assert [rates.admits((each, 1)) for each in ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1")] == [
        True, True, False,
    ]  # fmt: skip
    assert rates.admits(("fe80::1%eth0", 1))


def test_metrics_are_counts_without_names(service):
    made = service.create(COLUMNS, title=MARK)
    made.act("open")
    ask(service.address, "GET", "/nothing")
    text = ask(service.address, "GET", "/metrics")[2].decode()
    line = (
        r'(# TYPE sfumato_[a-z_]+ (counter|gauge)|sfumato_[a-z_]+(\{status="[0-9]{3}"\})? [0-9.]+'
        r'|sfumato_worker_info\{worker="[0-9a-f]{8}"\} 1)'
    )
    assert all(re.fullmatch(line, each) for each in text.splitlines())
    assert 'sfumato_requests_total{status="404"} 1' in text
    assert made.task not in text
    assert MARK not in text


def test_browsers_are_told_to_stay_with_https_where_people_come_by_it(service, tmp_path):
    name = "strict-transport-security"
    for path in ("/answer", "/healthz", "/v1/surveys/" + "0" * 32):
        _, plain, _ = ask(service.address, "GET", path)
        assert name not in {each.lower() for each, _ in plain}
        _, found, _ = ask(service.address, "GET", path, headers={"x-forwarded-proto": "https"})
        assert ("max-age=31536000") in [value for each, value in found if each.lower() == name]
    limits = Limits(per_second=0, https=True, hsts_s=60)
    with running(str(tmp_path / "other.db"), limits=limits) as other:
        _, found, _ = ask(other.address, "GET", "/answer")
        assert "max-age=60" in [value for each, value in found if each.lower() == name]
