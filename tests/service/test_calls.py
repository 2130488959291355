"""Requests of owners: what may have been done is not done twice, what was not is tried again."""

import socket
import threading

import pytest

from service.liar import lying
from sfumato.errors import InputError, StorageError
from sfumato.survey.owner import SurveyKeys, SurveyOwner
from sfumato.survey.protocol.http_client import Patience, Server

TOKEN = "a" * 48


def server(address, *, tries=3, slept=None):
    patience = Patience(tries=tries, first_wait_s=0.001)
    return Server(address=address, patience=patience, sleep=(slept or []).append)


def test_a_request_that_may_have_arrived_is_not_sent_again():
    """A server that takes the request and hangs up: an invitation may have been made."""
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def hang_up():
            connection, _ = listening.accept()
            heard.append(connection.recv(65_536))
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(StorageError, match="may have been done"):
            server(address).owned("/v1/x", {}, token=TOKEN)
        thread.join()
    assert len(heard) == 1


def test_a_server_that_is_not_up_yet_is_tried_again():
    slept = []
    patience = Patience(tries=4, first_wait_s=0.001)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    away = Server(address=address, patience=patience, sleep=slept.append)
    with pytest.raises(StorageError, match="Try again later"):
        away.owned("/v1/x", {}, token=TOKEN)
    assert len(slept) == 3


def test_a_refusal_is_told_without_control_characters():
    with lying() as liar:
        liar.replies["/v1/x"] = 409, {"error": "not \x1b[31mnow\n"}
        with pytest.raises(InputError, match=r"the server refused: not \[31mnow$"):
            server(liar.address).owned("/v1/x", {}, token=TOKEN)


def test_a_redirect_is_not_followed_with_a_token():
    with lying() as elsewhere, lying() as liar:
        liar.replies["/v1/x"] = 302, f"{elsewhere.address}/v1/x".encode()
        with pytest.raises(InputError, match="status 302"):
            server(liar.address).owned("/v1/x", token=TOKEN)
        assert elsewhere.asked == []


def test_a_reply_without_end_is_cut():
    with lying() as liar:
        liar.replies["/v1/x"] = 200, b" " * 5_000
        with pytest.raises(StorageError, match="longer than"):
            server(liar.address).call("/v1/x", most=1_000)


def test_what_is_no_server_of_surveys_is_told_so():
    with lying() as liar:
        liar.replies["/v1/surveys"] = 200, {"hello": 1}
        with pytest.raises(StorageError, match="like a survey server"):
            SurveyOwner.create(liar.address, {}, token=TOKEN)


def test_keys_do_not_show_their_secrets(tmp_path):
    key = "A" * 43 + "="
    keys = SurveyKeys(
        server="https://survey.example/", task="0" * 32, key=key, admin=TOKEN, reader="b" * 48
    )
    assert TOKEN not in repr(keys)
    keys.save(tmp_path / "keys.json")
    assert SurveyKeys.load(tmp_path / "keys.json") == keys
    assert keys.server == "https://survey.example"
